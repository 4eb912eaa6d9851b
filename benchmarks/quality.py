"""Recall and false flags of contam's policies on a labelled pack of real text.

Usage: python benchmarks/quality.py --data DIR [--out build/quality] [--policy ID,ID] [--json]
       [--index INDEX | --no-index]

DIR holds items/, corpus/, labels.parquet and item_truth.parquet. The corpus is scanned, then it is
indexed in --out (unless INDEX is an index of it) and the index is asked for the same items. Writes
quality.json to --out and prints tables (or, with --json, that file's content). Exit code 1 when a
class falls below the floor that quality_floor.json keeps for it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(HERE.parent))

from index_figures import POLICY  # noqa: E402
from labelled_scan import scan_pack  # noqa: E402
from quality_floor import read_floor, regressions  # noqa: E402
from quality_index import build_index, measure_index  # noqa: E402
from quality_measures import either, judging  # noqa: E402
from quality_report import report  # noqa: E402

from contam.detect.policies.policy import get_policy, sees_rephrasings  # noqa: E402
from contam.errors import ContamError  # noqa: E402
from contam.extras import require  # noqa: E402

DEFAULT_POLICIES = "contam,lmeval-13,openr1-8"
#: Measured beside them where its model is installed, and with POLICY as one answer.
REPHRASINGS = "contam-meaning"


def measure(data: Path, policies: list[str], workers: int) -> dict[str, Any]:
    """Scan the pack and join the answer with its labels; the content of quality.json.

    Policies that look for rephrasings have a scan of their own, since they see other pairs.
    """
    plain = [name for name in policies if not sees_rephrasings(get_policy(name))]
    measured, seconds, versions = [], [], {}
    for some in filter(None, (plain, [name for name in policies if name not in plain])):
        scan = scan_pack(data, some, workers=workers)
        measured.append(judging(data, some, scan))
        seconds.append(scan.seconds)
        versions = scan.run["versions"]
    found = {name: one for each in measured for name, one in each.judged().items()}
    answer = {
        "data": data.resolve().name,
        "seconds": seconds[0],
        "versions": versions,
        "policies": found,
    }
    if {POLICY, REPHRASINGS} <= found.keys():
        answer["seconds_rephrasings"] = seconds[1]
        both = either(measured[0], POLICY, measured[1], REPHRASINGS)
        answer["either"] = {f"{POLICY} or {REPHRASINGS}": both}
    return answer


def usual_policies() -> str:
    """What is measured where nothing is asked for."""
    try:
        require("meaning")
    except ContamError as error:
        print(f"quality: {REPHRASINGS} NOT MEASURED: {error.message}", file=sys.stderr)
        return DEFAULT_POLICIES
    return f"{DEFAULT_POLICIES},{REPHRASINGS}"


def add_index(answer: dict[str, Any], given: argparse.Namespace) -> None:
    """Ask an index of the pack as well, one that is built for it unless one was named."""
    folder, seconds = given.index, None
    if folder is None:
        folder = given.out / "index"
        seconds = build_index(given.data, folder, given.workers)
    scanned = answer["policies"][POLICY]
    answer["index"] = measure_index(given.data, folder, scanned, given.workers)
    answer["index"]["build_cpu_seconds"] = seconds


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled pack")
    parser.add_argument("--out", type=Path, default=Path("build/quality"))
    parser.add_argument("--policy", help="policies, comma-separated")
    parser.add_argument("--index", type=Path, help="an index of the pack's corpus; else built")
    parser.add_argument("--no-index", action="store_true", help="scan, and ask no index")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--floor", type=Path, default=HERE / "quality_floor.json")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args(arguments)
    try:
        policies = given.policy or usual_policies()
        answer = measure(given.data, policies.split(","), given.workers)
        if not given.no_index and POLICY in answer["policies"]:
            add_index(answer, given)
    except ContamError as error:
        print(f"quality: {error.message}" + f"; {error.hint}" * bool(error.hint), file=sys.stderr)
        return error.exit_code
    measured = {
        **answer["policies"],
        **answer.get("either", {}),
        **answer.get("index", {}).get("answers", {}),
    }
    answer["below_floor"] = regressions(measured, read_floor(given.floor))
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer, indent=1, ensure_ascii=False)
    (given.out / "quality.json").write_text(text + "\n", encoding="utf-8")
    print(text if given.json else report(answer))
    for line in answer["below_floor"]:
        print(f"quality: below the floor: {line}", file=sys.stderr)
    return 1 if answer["below_floor"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
