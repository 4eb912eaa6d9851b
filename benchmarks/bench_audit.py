"""What one audit costs: a corpus, the largest benchmarks of a folder, and many models' logs.

python benchmarks/bench_audit.py --corpus FOLDER --items FOLDER --out FOLDER
    [--index FOLDER] [--benchmarks 10] [--models 20] [--workers 2] [--policy contam,gpt3-test]

items      JSONL files with id, question, answer and, where the items have them, choices and passage
logs       lm-eval's sample and results files, written here: every model answers every item of every
           benchmark, right with a chance that its skill and the item decide; prompts are logged
           with each request, as lm-eval does
index      an index of the same corpus, to be asked in place of reading the corpus

The audit is a process of its own. Its memory is what the system says it held at the most, and by
stage what was seen of it every 20 ms; "own" leaves out pages of mapped files, such as an index,
which the system may take back at any time. CPU seconds are those of all its threads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
TIME: Final = "2024-01-01T00-00-00.000000"
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOOK_S: Final = 0.02
_STAGE: Final = re.compile(r"(checks|decoys)/\S+|scores|calibration|report")

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The items of one benchmark."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def largest(folder: Path, n: int) -> list[Path]:
    """The n files that hold the most items, by name."""
    files = sorted(folder.glob("*.jsonl"))
    count = {path: sum(1 for _ in path.open("rb")) for path in files}
    return sorted(sorted(files, key=lambda path: (-count[path], path.name))[:n])


def write_logs(folder: Path, benchmarks: list[Path], n_models: int, seed: int) -> None:
    """Logs of all models in lm-eval's layout."""
    for path in benchmarks:
        rows = read_rows(path)
        lines = [_logged(at, row) for at, row in enumerate(rows)]
        # What several models find hard is hard for a reason: the item's, not the model's.
        hard = [_share(seed, path.stem, at) for at in range(len(rows))]
        for number in range(n_models):
            skill = 0.3 + 0.6 * (number + 0.5) / n_models
            model = f"model-{number + 1:02}"
            home = folder / f"bench__{model}"
            home.mkdir(parents=True, exist_ok=True)
            right = [
                float(0.7 * hard[at] + 0.3 * _share(seed, path.stem, model, at) < skill)
                for at in range(len(rows))
            ]
            name = f"samples_{path.stem}_{TIME}.jsonl"
            with (home / name).open("w", encoding="utf-8") as file:
                file.writelines(
                    f'{head}, "acc": {score}}}\n' for head, score in zip(lines, right, strict=True)
                )
            _add_results(home / f"results_{TIME}.json", model, path.stem, right)


def _share(*key: object) -> float:
    """A number between 0 and 1 that the key alone decides."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _logged(at: int, row: Row) -> str:
    """A line of `--log_samples` without its score and its closing brace."""
    doc = {name: row[name] for name in ("passage", "question", "choices", "answer") if name in row}
    listed = [f"{letter}. {text}" for letter, text in zip(LETTERS, _choices(row), strict=False)]
    prompt = "\n".join(filter(None, [row.get("passage"), row["question"], *listed, "Answer:"]))
    asked: list[Any] = [f" {letter}" for letter in LETTERS[: len(listed)]]
    asked = asked or [{"until": ["\n\n"]}]
    line = {
        "doc_id": at,
        "doc": doc,
        "target": row["answer"],
        "arguments": {
            f"gen_args_{i}": {"arg_0": prompt, "arg_1": one} for i, one in enumerate(asked)
        },
        "resps": [[["-1.5", "False"]] if listed else ["an answer"] for _ in asked],
        "filtered_resps": ["an answer"],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": hashlib.sha256(json.dumps(doc, ensure_ascii=False).encode()).hexdigest(),
        "prompt_hash": hashlib.sha256(prompt.encode()).hexdigest(),
        "target_hash": hashlib.sha256(str(row["answer"]).encode()).hexdigest(),
    }
    return json.dumps(line, ensure_ascii=False)[:-1]


def _choices(row: Row) -> list[str]:
    return list(row.get("choices") or ())


def _add_results(path: Path, model: str, task: str, right: list[float]) -> None:
    tree: Row = json.loads(path.read_bytes()) if path.exists() else {}
    tree.setdefault("results", {})[task] = {
        "sample_len": len(right),
        "acc,none": sum(right) / len(right),
    }
    tree.setdefault("configs", {})[task] = {
        "metric_list": [{"metric": "acc", "aggregation": "mean"}]
    }
    tree.setdefault("higher_is_better", {})[task] = {"acc": True}
    tree |= {"model_name": f"bench/{model}", "lm_eval_version": "0.4.9"}
    path.write_text(json.dumps(tree), "utf-8")


def write_spec(path: Path, given: argparse.Namespace, benchmarks: list[Path]) -> None:
    """AUDIT.toml."""
    where = (
        f"index = [{_quoted(given.index)}]" if given.index else f"paths = [{_quoted(given.corpus)}]"
    )
    policies = ", ".join(json.dumps(name) for name in given.policy.split(","))
    path.write_text(
        f'[audit]\nout = "pack"\npolicies = [{policies}]\n'
        f'[[corpus]]\nname = "web"\n{where}\n'
        + "".join(f"[[benchmark]]\npaths = [{_quoted(benchmark)}]\n" for benchmark in benchmarks)
        + '[logs]\npaths = ["logs"]\nours = ["bench/model-01"]\n',
        "utf-8",
    )


def _quoted(path: Path) -> str:
    return json.dumps(str(path.resolve()))


@dataclass(slots=True)
class Seen:
    """What one process was seen to use: CPU seconds and MB of 10^6 bytes."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    own_mb: float = 0.0
    stages: dict[str, list[float]] = field(default_factory=dict)
    status: int = 0
    said: list[str] = field(default_factory=list)


def run(arguments: list[str]) -> Seen:
    """Run contam, and look at it until it ends."""
    seen = Seen()
    stage = ["start"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "contam", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    def listen() -> None:
        for line in process.stdout or ():
            seen.said.append(line.rstrip())
            if _STAGE.fullmatch(line.strip()):
                stage[0] = line.strip()

    listener = threading.Thread(target=listen)
    listener.start()
    last = (began, 0.0)
    ended: Any = None
    while ended is None:
        time.sleep(LOOK_S)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        now = time.perf_counter()
        if pid:
            ended = usage
            process.returncode = seen.status = os.waitstatus_to_exitcode(status)
            cpu, held, own = usage.ru_utime + usage.ru_stime, 0.0, 0.0
        else:
            cpu, (held, own) = _cpu(process.pid), _held_mb(process.pid)
        found = seen.stages.setdefault(stage[0], [0.0, 0.0, 0.0, 0.0])
        found[0] += now - last[0]
        found[1] += max(0.0, cpu - last[1])
        found[2] = max(found[2], held)
        found[3] = max(found[3], own)
        seen.own_mb = max(seen.own_mb, own)
        last = (now, cpu)
    listener.join()
    seen.wall = time.perf_counter() - began
    seen.cpu = ended.ru_utime + ended.ru_stime
    seen.peak_mb = ended.ru_maxrss * 1024 / 1e6
    return seen


def _cpu(pid: int) -> float:
    try:
        values = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def _held_mb(pid: int) -> tuple[float, float]:
    """(all that is in memory, what of it is no page of a file)."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0.0, 0.0
    found = [re.search(rf"{name}:\s+(\d+)", text) for name in ("VmRSS", "RssAnon")]
    whole, own = (int(one[1]) * 1024 / 1e6 if one else 0.0 for one in found)
    return whole, own


def opening_s(page: Path, home: Path) -> float | None:
    """Seconds until Chromium shows the first flagged items; None without Chromium."""
    sys.path.insert(0, str(ROOT))
    try:
        from tests.browser.driver import chromium, missing
    except ImportError:
        return None
    if missing():
        return None
    with chromium(home) as browser:
        began = time.perf_counter()
        browser.open(page)
        browser.wait(lambda: browser.all("#items tbody tr"))
        return time.perf_counter() - began


def main() -> None:
    """Print the figures as a table of Markdown."""
    given = _arguments()
    home = given.out
    home.mkdir(parents=True, exist_ok=True)
    benchmarks = largest(given.items, given.benchmarks)
    logs = home / "logs"
    if not logs.exists():
        write_logs(logs, benchmarks, given.models, given.seed)
    n_bytes = sum(path.stat().st_size for path in logs.rglob("*") if path.is_file())
    n_items = sum(len(read_rows(path)) for path in benchmarks)
    write_spec(home / "AUDIT.toml", given, benchmarks)
    workers = ["--workers", str(given.workers)]
    made = run(["audit", "run", str(home / "AUDIT.toml"), "--overwrite", *workers])
    if made.status:
        sys.exit("\n".join([*made.said[-20:], f"exit code {made.status}"]))
    again = run(["audit", "run", str(home / "AUDIT.toml"), "--overwrite"])
    verified = run(["audit", "verify", str(home / "pack")])
    pack = home / "pack"
    size = sum(path.stat().st_size for path in pack.rglob("*") if path.is_file())
    page = pack / "report.html"
    opened = opening_s(page, home / "chromium")
    names = ", ".join(path.stem for path in benchmarks)
    lines = [
        (
            f"{len(benchmarks)} benchmarks ({names}), {n_items:,} items; {given.models} models,"
            f" {n_bytes / 1e6:,.0f} MB of logs; {given.workers} workers"
        ),
        "",
        "| | wall s | CPU s | peak MB | own MB |",
        "| --- | ---: | ---: | ---: | ---: |",
        _line("`contam audit`, all of it", made),
        *(
            f"| {name} | {wall:.1f} | {cpu:.1f} | {held:,.0f} | {own:,.0f} |"
            for name, (wall, cpu, held, own) in made.stages.items()
        ),
        _line("the same again: nothing has changed", again),
        _line("`contam audit verify`", verified),
        "",
        f"pack {size / 1e6:.1f} MB, report.html {page.stat().st_size / 1e6:.1f} MB, "
        + ("not opened: no Chromium" if opened is None else f"opens in {opened:.2f} s"),
        *made.said[-3:],
        *verified.said,
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _line(name: str, seen: Seen) -> str:
    times = f"{seen.wall:.1f} | {seen.cpu:.1f}"
    return f"| {name} | {times} | {seen.peak_mb:,.0f} | {seen.own_mb:,.0f} |"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="a folder for logs and pack")
    parser.add_argument("--benchmarks", type=int, default=10)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--policy", default="contam,gpt3-test")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
