"""Take up studies in an audit: a stage of the pack for each, and what its report says of them."""

from __future__ import annotations

import glob
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.audit.checks import digest_of, without_times
from contam.audit.public_names import public
from contam.files.single import fingerprint
from contam.study.by_name import BY_VERDICTS, paths_of, run_named
from contam.study.model import STUDY_FORMAT, TABLES, write_study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contam.audit.spec import AuditSpec
    from contam.audit.stage_cache import StageCache

SCORES: Final = "scores"
STUDIES: Final = "studies"


def make_studies(
    spec: AuditSpec,
    stage_cache: StageCache,
    verdicts: str,
    scores: Path | None,
) -> tuple[dict[str, Any], ...]:
    """Run the studies of an audit, each a stage; returns what the report says of them.

    verdicts  the stage whose verdicts count;  scores  folder of the re-scoring, where there is one
    """
    found = []
    for name, options in spec.studies.items():
        stage = f"{STUDIES}/{name}"
        own = options.get(BY_VERDICTS) or not [*paths_of(name, options)]
        key = [
            STUDY_FORMAT, name, options, _files(name, options),
            spec.policies, spec.seed, spec.least,
            [stage_cache.keys.get(key) for key in (verdicts, SCORES)] if own else None,
        ]  # fmt: skip
        making = _making(name, spec, stage_cache.folder / verdicts, scores)
        found.append(facts_of(name, stage_cache.stage(stage, digest_of(key), making)))
    return tuple(found)


def facts_of(name: str, folder: Path) -> dict[str, Any]:
    """What a report says of a study, from its folder."""
    tree = json.loads((folder / TABLES).read_bytes())
    pictures = [path.stem for path in sorted(folder.glob("*.svg"))]
    return {
        "name": name,
        "finding": tree["finding"],
        "refused": tree["refused"],
        "pictures": pictures,
        "notes": tree["run"].get("notes", []),
    }


def _files(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Every file that a study reads, by digest."""
    found: dict[str, Any] = {}
    for given in paths_of(name, options):
        path = Path(given)
        below = [path] if path.exists() else map(Path, sorted(glob.glob(given, recursive=True)))  # noqa: PTH207 - takes absolute patterns
        for one in below:
            files = sorted(one.rglob("*")) if one.is_dir() else [one]
            found |= {str(file): fingerprint(file) for file in files if file.is_file()}
    return found


def _making(
    name: str,
    spec: AuditSpec,
    verdicts: Path,
    scores: Path | None,
) -> Callable[[Path], dict[str, Any]]:
    def make(draft: Path) -> dict[str, Any]:
        study = run_named(
            name,
            spec.studies[name],
            verdicts=verdicts,
            policy=spec.policies[0],
            rescored=scores,
            seed=spec.seed,
            least=spec.least,
        )
        write_study(replace(study, run=public(dict(study.run), spec)), draft)
        return without_times(draft)

    return make
