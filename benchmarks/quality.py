"""Recall and false flags of contam's policies on a labelled pack of real text.

Usage: python benchmarks/quality.py --data DIR [--out build/quality] [--policy ID,ID] [--json]

DIR holds items/, corpus/, labels.parquet and item_truth.parquet. Writes quality.json to --out and
prints tables (or, with --json, that file's content). Exit code 1 when a class falls below the floor
that quality_floor.json keeps for it.
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

from labelled_scan import LabelledScan, query_pack, scan_pack  # noqa: E402
from quality_floor import read_floor, regressions  # noqa: E402
from quality_measures import Measures  # noqa: E402
from quality_report import report  # noqa: E402

from contam.errors import ContamError  # noqa: E402

DEFAULT_POLICIES = "contam,lmeval-13,openr1-8"


def measure(data: Path, policies: list[str], scan: LabelledScan) -> dict[str, Any]:
    """Join what a scan or an index said with the labels; the content of quality.json."""
    if not scan.run["coverage"]["complete"]:
        raise ContamError(
            "the labelled corpus could not be read whole",
            hint="`contam scan` on it names the shards",
        )
    measures = Measures(data, scan)
    definitions = scan.run["parameters"]["policy_definitions"]
    return {
        "data": data.resolve().name,
        "seconds": scan.seconds,
        "versions": scan.run["versions"],
        "policies": {
            policy: {
                "fingerprint": definitions[policy]["fingerprint"],
                "recall": measures.recall(policy),
                "by_place": measures.recall_by_place(policy),
                "false_flags": measures.false_flags(policy),
                "absent": measures.absent(policy),
                "by_status": measures.by_status(policy),
                "unlisted": measures.unlisted(policy),
                "unlisted_by_benchmark": measures.unlisted_by_benchmark(policy),
                "examples": {
                    "missed": measures.misses(policy),
                    "false_flags": measures.false_flag_examples(policy),
                    "absent": measures.absent_examples(policy),
                    "unlisted": measures.unlisted_examples(policy),
                },
            }
            for policy in policies
        },
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled pack")
    parser.add_argument("--out", type=Path, default=Path("build/quality"))
    parser.add_argument("--policy", default=DEFAULT_POLICIES, help="policies, comma-separated")
    parser.add_argument("--index", type=Path, help="ask this index of the pack's corpus instead")
    parser.add_argument(
        "--no-minhash", action="store_true", help="with --index: by its n-grams alone"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--floor", type=Path, default=HERE / "quality_floor.json")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args(arguments)
    try:
        policies = given.policy.split(",")
        if given.index is None:
            scan = scan_pack(given.data, policies, workers=given.workers)
        else:
            near = not given.no_minhash
            scan = query_pack(given.data, given.index, policies, workers=given.workers, near=near)
        answer = measure(given.data, policies, scan)
    except ContamError as error:
        print(f"quality: {error.message}" + f"; {error.hint}" * bool(error.hint), file=sys.stderr)
        return error.exit_code
    answer["below_floor"] = regressions(answer["policies"], read_floor(given.floor))
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer, indent=1, ensure_ascii=False)
    (given.out / "quality.json").write_text(text + "\n", encoding="utf-8")
    print(text if given.json else report(answer))
    for line in answer["below_floor"]:
        print(f"quality: below the floor: {line}", file=sys.stderr)
    return 1 if answer["below_floor"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
