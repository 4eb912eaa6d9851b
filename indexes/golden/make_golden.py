"""Write the golden index of this format and normaliser, and the truth about it: once.

    python indexes/golden/make_golden.py

What is there already is never written again: it stands for every index that users have. A new
format or normaliser gets a folder of its own, which holds a corpus, questions, the index and the
frozen answers.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contam.index.build import build
from contam.index.change import add, retire
from contam.index.manifest import publish_manifest, read_manifest
from contam.index.model import FORMAT, Manifest, Recipe
from contam.index.states import STATES
from contam.text.text_tables import NORMALISER

GUARANTEE = 8
RETIRED = "part-1/4"
NEAR = ["kettles", "third/3"]

HOME = Path(__file__).parent / f"v{FORMAT}-{NORMALISER}"

ITEMS = [
    {
        "id": "kettles",
        "question": "A lantern keeper counts nineteen copper kettles at dawn, lends four of them to "
        "the ferryman and sells half of the rest at the fair. How many kettles does she still have?",
        "answer": "Seven and a half, so she must have sold seven.",
    },
    {
        "id": "orchard",
        "question": "In the orchard behind the old observatory every third pear tree leans toward the "
        "river; if sixty trees stand there, how many of them lean?",
        "choices": ["twelve", "fifteen", "twenty", "thirty"],
        "answer": "twenty",
    },
    {
        "id": "glacier",
        "question": "Which sound do the villagers below the glacier take as a sign that the ice bridge "
        "will not bear a loaded sledge before the end of the week?",
        "choices": ["a hollow drum", "a whistle", "running water", "no sound at all"],
        "answer": "running water",
    },
    {
        "id": "violin",
        "question": "The violin maker varnishes two instruments on dry days and none when it rains. "
        "After nine days, three of them wet, how many instruments shine in her window?",
        "answer": "twelve",
    },
    {
        "id": "saffron",
        "passage": "The saffron traders of the upper valley weigh their goods at night, because they "
        "hold that the moon draws moisture from the threads and makes an honest ounce lighter.",
        "question": "Why do the traders of the upper valley weigh saffron at night?",
        "answer": "They believe that moonlight dries the threads.",
    },
    {
        "id": "compass",
        "question": "A compass needle in the granite quarry points eleven degrees west of where it "
        "points on the meadow; by how much must the surveyor correct a line of sight taken there?",
        "answer": "eleven degrees",
    },
    {
        "id": "falcon",
        "question": "Before whom does the marble falcon above the harbour gate bow, according to the "
        "song that the rope makers sing on the first evening of the year?",
        "answer": "before the tide",
    },
    {
        "id": "trellis",
        "question": "How long a ribbon binds a trellis of seven posts when each knot takes a span and "
        "each gap between two posts takes two spans more than a knot?",
        "answer": "twenty-five spans",
    },
]

FILLER = [
    "The night ferry was late again, and nobody on the quay seemed to mind.",
    "We repainted the boat shed in a green that turned out to be almost blue.",
    "My aunt keeps bees and says that they know the weather two days ahead.",
    "There is a bakery near the station that sells out of rye bread by eight.",
    "Last winter the pipes froze and the whole street carried water from the pump.",
    "He learned to solder from a neighbour who repairs radios for a hobby.",
    "The museum lends out its smaller telescopes if you sign a form in ink.",
    "On Thursdays the library stays open late and the heating is left on.",
    "A bicycle with a bent fork is cheaper to replace than to straighten.",
    "They planted three rows of beans and the snails ate two of them.",
    "The choir rehearses in the gymnasium because the chapel roof still leaks.",
    "Nobody remembers who painted the number on the last house of the lane.",
    "It took us an hour to find the path down to the lower meadow.",
    "The map shows a mill there, but all we found was a wall and some nettles.",
    "Her first loom came in eleven boxes without any instructions.",
    "If the kettle whistles before the toast is done, the toast will burn.",
]


def filler(seed: int, n: int) -> str:
    """Some sentences of no interest."""
    rng = np.random.default_rng(seed)
    return " ".join(FILLER[i] for i in rng.choice(len(FILLER), n, replace=False))


def words(item: int, lo: int, hi: int) -> str:
    """A stretch of a question, in words."""
    return " ".join(ITEMS[item]["question"].split()[lo:hi])


def edited(text: str) -> str:
    """A text with every sixth word another one: no run is longer than five words."""
    kept = text.split()
    for at in range(5, len(kept), 6):
        kept[at] = f"other{at}"
    return " ".join(kept)


def documents() -> list[list[str | None]]:
    """The texts of the three shards."""
    kettles, orchard, glacier, violin, saffron, compass, falcon, _ = (
        str(item["question"]) for item in ITEMS
    )
    passage = str(ITEMS[4]["passage"])
    first = [
        filler(1, 6),
        f"{filler(2, 4)} {kettles} Answer: seven. {filler(3, 3)}",
        None,
        orchard,
        "",
        f"{filler(4, 2)} {words(5, 3, 11)} {filler(5, 2)}",  # eight words of a question: found
        "one two three four",  # shorter than a gram
        f"{filler(6, 9)} {glacier.upper()}",
    ]
    second = [
        f"{kettles}\n\n{violin}\n\n{filler(7, 3)}",
        f"{filler(8, 5)} {passage} {filler(9, 2)} {saffron} They believe that moonlight dries it.",
        f"{filler(10, 7)} {words(6, 0, 14)} and so on. {filler(11, 1)}",
        filler(12, 11),
        f"{falcon} It bows before the tide.",  # retired below
        f"{filler(13, 1)} {compass.replace('eleven', 'twelve')} {filler(14, 1)}",
    ]
    third = [
        f"{filler(15, 3)} {orchard.replace(' ', '  ')} twelve, fifteen, twenty, thirty",
        filler(16, 12),
        f"{words(3, 0, 12)} {filler(17, 2)} {words(3, 12, 40)}",
        # No gram that is sampled (at words 0, 4, 8, ...) stands in the question.
        f"Once {edited(kettles)} {filler(18, 3)}",
    ]
    return [list(first), list(second), list(third)]


def shared_runs() -> list[list[str | int]]:
    """Item, document and longest shared run of words, of every pair that shares at least 8.

    Worked out from the texts alone, which are plain enough for a regular expression.
    """
    found: list[list[str | int]] = []
    for item in ITEMS:
        parts = [str(item.get(part, "")) for part in ("passage", "question", "answer")]
        for shard, texts in zip(("part-0", "part-1", "third"), documents(), strict=True):
            for row, text in enumerate(texts):
                longest = max(longest_run(part, text or "") for part in parts)
                if longest >= GUARANTEE:
                    found.append([str(item["id"]), f"{shard}/{row}", longest])
    return found


def longest_run(one: str, other: str) -> int:
    """Words of the longest run that two texts share."""
    left, right = (re.findall(r"[a-z0-9]+", text.lower()) for text in (one, other))
    best = 0
    before = [0] * (len(right) + 1)
    for word in left:
        now = [0] * (len(right) + 1)
        for j, match in enumerate(right):
            if word == match:
                now[j + 1] = before[j] + 1
        best = max(best, *now)
        before = now
    return best


def recipe() -> Recipe:
    """Every run of eight words, and near copies, whatever the recipes that ship say by now."""
    return Recipe(
        name="golden",
        unit="word",
        gram=5,
        stride=4,
        cap=10_000,
        key_bits=36,
        normaliser=NORMALISER,
        minhash=True,
    )


def write_corpus(folder: Path) -> None:
    """Two Parquet shards and one of JSON lines, and the questions."""
    first, second, third = documents()
    folder.mkdir(parents=True)
    for name, texts in (("part-0.parquet", first), ("part-1.parquet", second)):
        ids = [f"{name[:6]}/{row}" for row in range(len(texts))]
        dates = [f"2021-03-{row + 1:02d}" for row in range(len(texts))]
        table = pa.table({"id": ids, "date": dates, "text": pa.array(texts, pa.string())})
        pq.write_table(table, folder / name, row_group_size=3)
    lines = [json.dumps({"id": f"third/{row}", "text": text}) for row, text in enumerate(third)]
    (folder / "part-2.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = [json.dumps(item) for item in ITEMS]
    (folder.parent / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def without_a_machine(manifest: Manifest) -> Manifest:
    """The manifest without the place of this checkout: shards are found by their digests."""
    shards = tuple(replace(shard, uri=f"/golden/{shard.name}") for shard in manifest.shards)
    return replace(manifest, paths=("corpus",), shards=shards)


def make(home: Path) -> None:
    """Write all of it into an empty or new folder."""
    write_corpus(home / "corpus")
    os.chdir(home)
    build("corpus/*.parquet", "index", recipe(), workers=1)
    add("index", "corpus/part-2.jsonl", workers=1)
    retire("index", documents=[RETIRED])
    index = Path("index")
    publish_manifest(index, without_a_machine(read_manifest(index)))
    (index / STATES).unlink()
    truth = {
        "guarantee": GUARANTEE,
        "retired": [RETIRED],
        "shared": shared_runs(),
        "near": [NEAR],
    }
    Path("truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if HOME.exists():
        sys.exit(f"{HOME.name} is there already, and stays as it is")
    make(HOME)
