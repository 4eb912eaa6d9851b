"""What users see of a release, as digests: a change that is meant to change none of it can prove it.

`make frozen` runs commands over bench_fixtures, in a folder of their own, and compares every file
they write, every help page, errors, the sentences of all remedies and openapi.json with
tests/frozen.json; `make frozen ARGS=--write`
notes them anew. Digests hold for the releases that requirements/dev.txt pins.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from contam.cli.remedies import SENTENCES as ON_THE_COMMAND_LINE
from contam.detect.policies.policy import get_policy, list_policies, shortest_run
from contam.index.recipe import load_recipe
from contam.remedies import Remedy
from contam.server.problems.remedies import SENTENCES as OVER_HTTP
from tests.refused import REFUSED, index_in_use, write_wrong_files

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
NOTED = Path(__file__).with_suffix(".json")

#: Keys of JSON files that differ between two runs of one command, or hang on where it ran.
VOLATILE = {"timings", "ids"}
#: Files that hold nothing else: times, and digests of files that name the folder they were made in.
UNCOMPARED = {"MANIFEST.json", "MANIFEST.json.states", "manifest.json", "times.json"}
#: An index and its segments are named by digests of what they hold and of where that is.
IDENTITY = re.compile(r"\b([0-9a-f]{16}|[0-9a-f]{32})\b")
TOKENIZER = "tokenizer.json"
POLICIES = [get_policy(spec.id) for spec in list_policies()]
ALL = ",".join(policy.spec.id for policy in POLICIES)
#: Those that an index by the recipe `standard` can answer.
OF_WORDS = ",".join(
    policy.spec.id
    for policy in POLICIES
    if policy.spec.unit == "word" and shortest_run(policy) >= load_recipe("standard").guarantee
)
ITEMS = "--benchmark bench_fixtures/items"
CORPUS = "--corpus bench_fixtures/corpus"
SCAN = f"scan {CORPUS} {ITEMS} --out"
RESCORE = "rescore --logs bench_fixtures/logs --least 15 --out"
#: Run in this order: the command, and the file or folder that it writes.
WRITTEN = (
    (f"{SCAN} scan --policy {ALL}", "scan"),
    (f"{SCAN} scan-default", "scan-default"),
    (f"{SCAN} scan-one-worker --workers 1", "scan-one-worker"),
    (f"{SCAN} scan-chars --unit char", "scan-chars"),
    (f"{SCAN} scan-tokenizer --unit {TOKENIZER}", "scan-tokenizer"),
    (f"{SCAN} scan-no-text --no-text", "scan-no-text"),
    (f"{SCAN} scan-one-document --max-evidence 1 --min-run 5", "scan-one-document"),
    (f"index build {CORPUS} --index ./words", "words"),
    (f"index build {CORPUS} --index ./chars --recipe chars", "chars"),
    (f"index build {CORPUS} --index ./tokens --recipe bpe --tokenizer {TOKENIZER}", "tokens"),
    (f"query {ITEMS} --index ./words --policy {OF_WORDS} --out query", "query"),
    (
        f"query {ITEMS} --index ./chars --policy igmini-50,gpt4-50char --out query-chars",
        "query-chars",
    ),
    (f"query {ITEMS} --index ./tokens --out query-tokens", "query-tokens"),
    (f"hash {ITEMS} --index ./words --out hashed.jsonl", "hashed.jsonl"),
    (f"{RESCORE} scores --verdicts scan-default", "scores"),
    (f"{RESCORE} scores-all --verdicts scan --all-metrics", "scores-all"),
    (f"{RESCORE} scores-one --verdicts scan --policy tulu3-50 --seed 1", "scores-one"),
    (f"{RESCORE} scores-told --verdicts scan-default --reference quokka-7b", "scores-told"),
    (f"{RESCORE} scores-labels --verdicts labels.csv --unlisted clean", "scores-labels"),
    ("audit bench_fixtures/AUDIT.toml", "build/demo-audit"),
)
LABELS = "sql scan-default 'select item_id, label from verdicts order by all' --csv"
#: Commands of which the standard output is compared.
PRINTED = (
    "show scan-default",
    "show scan-default --json",
    f"{SCAN} scan-default --overwrite --json",
    "logs bench_fixtures/logs",
    "logs bench_fixtures/logs --json",
    f"dupes {ITEMS} --within",
    f"dupes {ITEMS} --within --json",
    "query --index ./words --text-file bench_fixtures/README.md --json",
    "index show --index ./words",
    "index show --index ./words --json",
    "index verify --index ./words",
    "policies",
    *(f"policies {name}" for name in ALL.split(",")),
    LABELS,
)


def contam(arguments: str, folder: Path) -> str:
    """What a command prints in a folder; exit codes other than 0, 3 and 4 end the comparison.

    Of a command that is refused, the code and all that it prints.
    """
    environment = os.environ | {"COLUMNS": "92", "NO_COLOR": "1", "TZ": "UTC"}
    call = [str(Path(sys.executable).with_name("contam")), *shlex.split(arguments)]
    done = subprocess.run(
        call, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if arguments in REFUSED:
        return f"exit code {done.returncode}\n{done.stderr}{done.stdout}"
    if done.returncode not in {0, 3, 4}:
        sys.exit(f"contam {arguments}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def digest(data: bytes, folder: Path) -> str:
    """Of what was written or printed, wherever that was."""
    return hashlib.sha256(data.replace(str(folder).encode(), b"FOLDER")).hexdigest()[:16]


def lasting(value: object) -> object:
    """A JSON document without its volatile keys."""
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if key not in VOLATILE}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def lasting_text(command: str, printed: str) -> bytes:
    """What a command printed, without the names of indexes and of their segments."""
    return (IDENTITY.sub("ID", printed) if "--index" in command else printed).encode()


def files_of(result: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Every file that a command wrote: its name, and the bytes that are compared."""
    for path in [result] if result.is_file() else sorted(result.rglob("*")):
        if path.is_file() and path.name not in UNCOMPARED:
            data = path.read_bytes()
            if path.suffix == ".json":
                data = json.dumps(lasting(json.loads(data))).encode()
            yield IDENTITY.sub("ID", str(Path(name, path.relative_to(result)))), data


def help_pages(folder: Path) -> Iterator[tuple[str, str]]:
    """What --help prints for every command."""
    todo = [""]
    while todo:
        command = todo.pop()
        page = contam(f"{command} --help", folder)
        yield f"{command} --help".strip(), page
        listed = re.findall(r"^  ([a-z]\w*) {2,}\S", page, re.MULTILINE)
        todo += [f"{command} {name}".strip() for name in listed]


def outcome(folder: Path) -> Iterator[tuple[str, str]]:
    """The name and the digest of everything that is compared."""
    for command, page in help_pages(folder):
        yield f"$ contam {command}", digest(page.encode(), folder)
    shutil.copytree(REPOSITORY / "bench_fixtures", folder / "bench_fixtures")
    save_tokenizer(folder / TOKENIZER)
    for command, written in WRITTEN:
        if "labels.csv" in command:
            (folder / "labels.csv").write_text(contam(LABELS, folder), encoding="utf-8")
        contam(command, folder)
        for name, data in files_of(folder / written, written):
            yield name, digest(data, folder)
    for command in PRINTED:
        printed = contam(command, folder)
        yield f"$ contam {command}", digest(lasting_text(command, printed), folder)
    write_wrong_files(folder)
    with index_in_use(folder / "wrong/busy"), ThreadPoolExecutor(os.cpu_count()) as pool:
        for command, printed in zip(
            REFUSED, pool.map(partial(contam, folder=folder), REFUSED), strict=True
        ):
            yield f"$ contam {command}", digest(lasting_text(command, printed), folder)
    for name, table in {
        "package": {},
        "command line": ON_THE_COMMAND_LINE,
        "service": OVER_HTTP,
    }.items():
        told = [f"{one.name}: {table.get(one, one.value)}" for one in sorted(Remedy, key=str)]
        yield f"remedies of the {name}", digest("\n".join(told).encode(), folder)
    contract = REPOSITORY / "service/openapi.json"
    yield "service/openapi.json", digest(contract.read_bytes(), folder)


def save_tokenizer(path: Path) -> None:
    """A small BPE over bytes."""
    vocabulary = {token: at for at, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("in", "g"), ("a", "n"), ("e", "r")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(path))


def main() -> None:
    """Compare, or note with --write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="note the digests as they are")
    write = parser.parse_args().write
    noted = {} if write else json.loads(NOTED.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        for what, value in outcome(Path(name).resolve()):
            found[what] = value
            if not write and noted.get(what) != value:
                sys.stderr.write(f"{'changed' if what in noted else 'new'}: {what}\n")
    if write:
        NOTED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for what in [] if write else noted.keys() - found.keys():
        sys.stderr.write(f"gone: {what}\n")
    sys.stdout.write(f"{len(found)} files and pages {'noted' if write else 'compared'}\n")
    sys.exit(not write and found != noted)


if __name__ == "__main__":
    main()
