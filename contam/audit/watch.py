"""Watch a benchmark: audit what changed, append to a history, and show all runs on one page.

A folder holds the newest pack (`pack`), the one before it (`previous`), what every run found
(`runs.parquet`, `figures.parquet`), the page (`index.html`, `report`), and what was found in each
shard (`parts`), so that only new and changed shards are read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.audit.diff import CHANGES, compare_packs
from contam.audit.gate.decide import run_gate
from contam.audit.manifest import MANIFEST, read_verified
from contam.audit.pack import CHECKS, run_audit
from contam.audit.spec import TOGETHER
from contam.audit.stage_cache import copy_tree
from contam.audit.waivers.register import utc_today
from contam.audit.watch_page import page, study_of
from contam.cleaning.clean import refuse_nested
from contam.errors import OutputError, Public, Remedy
from contam.files.addresses import refuse_address
from contam.files.publish import output_errors
from contam.files.single import whole_file, write_file
from contam.study.model import table_of
from contam.study.write import write_study
from contam.tables import schemas

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Container, Iterator, Mapping, Sequence

    from contam.audit.diff import Difference
    from contam.audit.facts import Facts
    from contam.audit.gate.decide import GateVerdict
    from contam.audit.gate.rules import AnyRule
    from contam.audit.pack import Pack
    from contam.audit.spec import AuditSpec
    from contam.audit.stage_cache import AuditProgress
    from contam.study.model import Study
    from contam.tables.schemas import Table

    Row = dict[str, Any]

PACK, PREVIOUS, REPORT, PARTS = "pack", "previous", "report", "parts"
RUNS_FILE, FIGURES_FILE, PAGE = "runs.parquet", "figures.parquet", "index.html"
_LOCK: Final = "watch.lock"
_DRAFT: Final = ".previous.draft"
RUNS: Final = {
    "run": int, "at": str, "digest": str, "status": str, "changed": bool, "complete": bool,
    "gate": str, "reused": int, "searched": int, "kept": int, "said": str,
}  # fmt: skip
FIGURES: Final = {
    "run": int, "figure": str, "benchmark": str, "policy": str, "model": str, "metric": str,
    "n": int, "value": float,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One run of a watch.

    run    its number, from 1;  changed  whether the audit differs from that of the run before
    gate   what became of the rules; None without rules
    searched, kept  shards that were read, and those of which earlier runs knew the answer
    study  history, control charts and changes, as they are on the page
    """

    run: int
    changed: bool
    pack: Pack
    gate: GateVerdict | None
    searched: int
    kept: int
    study: Study

    @property
    def complete(self) -> bool:
        """Whether all of the corpora was read."""
        return bool(self.pack.facts.coverage["complete"])


def watch(
    spec: AuditSpec,
    *,
    rules: Sequence[AnyRule] = (),
    workers: int | None = None,
    talk: AuditProgress | None = None,
    today: dt.date | None = None,
) -> Watched:
    """Audit what changed since the last run in the folder `spec.out`, and add to its history.

    rules  of a gate that the new pack has to pass

    Stages whose inputs are the same are not run again, and of a corpus only shards are read that
    are new or changed since a run that looked for the same. Raises OutputError while another run
    is under way in the folder, and what an audit raises; the history is then as it was, and
    finished stages and shards are kept for the next run.
    """
    refuse_address(spec.out, "where a history is kept", Remedy.NAME_LOCAL_FOLDER)
    home = Path(spec.out)
    refuse_nested(home, [path for corpus in spec.corpora for path in corpus.paths])
    with _alone(home):
        runs, figures = _history(home)
        last = runs[-1] if runs else None
        _keep(home, str(last["digest"]) if last else "")
        made = run_audit(
            replace(spec, out=str(home / PACK)),
            workers=workers,
            overwrite=True,
            talk=talk,
            today=today,
            parts=home / PARTS,
        )
        _forget(home / PARTS, made.parts)
        searched, kept = _shards(spec, made)
        number = int(last["run"]) + 1 if last else 1
        changed = last is None or last["digest"] != made.digest
        difference = None
        if changed and last and _digest_of(home / PREVIOUS) == last["digest"]:
            difference = compare_packs(home / PREVIOUS, made.folder)
        gate = run_gate(rules, made.folder, today or utc_today()) if rules else None
        runs.append(
            {
                "run": number,
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "digest": made.digest,
                "status": made.facts.headline.status,
                "changed": changed,
                "complete": bool(made.facts.coverage["complete"]),
                "gate": "" if gate is None else "passed" if gate.passed else "failed",
                "reused": len(made.reused),
                "searched": searched,
                "kept": kept,
                "said": _said(difference, home, changed=changed),
            }
        )
        if changed:
            figures += [{"run": number, **row} for row in figures_of(made.facts)]
        study = study_of(runs, figures, made.facts, difference, gate)
        _write(home / FIGURES_FILE, table_of(figures, FIGURES))
        with output_errors(home):
            write_study(study, home / REPORT, overwrite=True)
        write_file(home / PAGE, page(study, home / REPORT).encode(), overwrite=True)
        # Last: only now the run has taken place.
        _write(home / RUNS_FILE, table_of(runs, RUNS))
    return Watched(
        run=number, changed=changed, pack=made, gate=gate, searched=searched, kept=kept, study=study
    )


def figures_of(facts: Facts) -> Iterator[Row]:
    """The figures of an audit that a history follows, each a share or a score."""
    for bench in facts.benchmarks:
        for policy in bench.policies:
            if policy.corpus != TOGETHER:
                continue
            place = {
                "benchmark": bench.name, "policy": policy.policy, "model": "", "metric": "",
                "n": bench.n_items,
            }  # fmt: skip
            yield {**place, "figure": "flagged", "value": policy.flagged_share}
            open_share = policy.not_checkable / bench.n_items if bench.n_items else 0.0
            yield {**place, "figure": "not checkable", "value": open_share}
    for row in facts.scores:
        place = {name: row[name] for name in ("benchmark", "policy", "model", "metric")}
        yield {**place, "n": row["n"], "figure": "full", "value": row["full"]}
        if row["n_clean"] >= facts.least:
            yield {**place, "n": row["n_clean"], "figure": "clean", "value": row["clean"]}


def _shards(spec: AuditSpec, made: Pack) -> tuple[int, int]:
    """Shards that were read, and those whose answer was there, of the corpora without an index."""
    searched = kept = 0
    coverages = {corpus.name: corpus.coverage for corpus in made.facts.corpora}
    for corpus in spec.corpora:
        stage = f"{CHECKS}/{corpus.name}"
        if corpus.index:
            continue
        if stage in made.reused:
            kept += coverages[corpus.name]["shards_read"]
        else:
            searched += made.parts[stage].n_searched
            kept += made.parts[stage].n_kept
    return searched, kept


def _forget(folder: Path, known: Container[str]) -> None:
    """Remove the parts of corpora that are watched no more."""
    with output_errors(folder):
        for stage in folder.glob("*/*"):
            if stage.relative_to(folder).as_posix() not in known:
                shutil.rmtree(stage)


def _said(difference: Difference | None, home: Path, *, changed: bool) -> str:
    """What changed since the run before, in one line."""
    if difference is None:
        return "there is no run before to compare with" if changed else "nothing changed"
    parts = list(_inputs_changed(home))
    counts = {name: difference.count(name) for name in CHANGES}
    parts += [f"{n} verdicts {name.replace('_', ' ')}" for name, n in counts.items() if n]
    if models := {change.of for change in difference.scores}:
        parts.append(f"{len(models)} scores are other ones or new")
    return ", ".join(parts) or "settings or versions changed"


def _inputs_changed(home: Path) -> Iterator[str]:
    """Which shards, benchmarks and logs are new, gone or altered, by their digests."""
    before, after = (
        _inputs(read_verified(home / folder / MANIFEST)["inputs"]) for folder in (PREVIOUS, PACK)
    )
    for kind in after:
        old, new = before.get(kind, {}), after[kind]
        counts = {
            "new": len(new.keys() - old.keys()),
            "gone": len(old.keys() - new.keys()),
            "altered": sum(new[name] != old[name] for name in new.keys() & old.keys()),
        }
        yield from (f"{kind}: {n} {what}" for what, n in counts.items() if n)


def _inputs(tree: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Kind of input -> name -> digest, of a pack's manifest."""
    logs = tree.get("logs") or {}
    return {
        "shards": {
            f"{corpus}/{shard['name']}": shard.get("digest")
            for corpus, shards in tree["corpora"].items()
            for shard in shards
        },
        "benchmark files": {
            f"{bench['name']}/{source.get('path')}": source.get("sha256")
            for bench in tree["benchmarks"]
            for source in bench.get("sources", ())
        },
        "logs": {str(name): value for name, value in logs.items()},
    }


def _keep(home: Path, digest: str) -> None:
    """Keep the pack of the last run as the one before, unless a killed run has done so already."""
    current, kept = home / PACK, home / PREVIOUS
    if not digest or _digest_of(current) != digest:
        # A killed run has published a newer one; the one before was kept by it.
        return
    if _digest_of(kept) == digest:
        return
    with output_errors(home):
        draft = home / _DRAFT
        for folder in (draft, kept):
            shutil.rmtree(folder, ignore_errors=True)
        copy_tree(current, draft)
        draft.replace(kept)


def _digest_of(pack: Path) -> str:
    """The digest of a pack, empty where there is none. Raises OutputError for a damaged one."""
    path = pack / MANIFEST
    if not path.is_file():
        return ""
    try:
        return str(read_verified(path)["digest"])
    except OutputError as error:
        raise OutputError(
            "{}", Public(error.message), remedy=Remedy.RESTORE_OR_REMOVE_PACK
        ) from error


def _history(home: Path) -> tuple[list[Row], list[Row]]:
    """The runs so far, and their figures. Raises OutputError where some of either are lost."""
    runs, figures = _read(home / RUNS_FILE, RUNS), _read(home / FIGURES_FILE, FIGURES)
    done = [row["run"] for row in runs]
    changed = {row["run"] for row in runs if row["changed"]}
    told = {row["run"] for row in figures}
    # A run that was killed before it was written into the list has left its figures at most.
    if not changed <= told <= {*done, max(done, default=0) + 1}:
        raise OutputError(
            "{}: {} and {} are not of one history", home, Public(RUNS_FILE), Public(FIGURES_FILE),
            remedy=Remedy.RESTORE_HISTORY,
        )  # fmt: skip
    return runs, [row for row in figures if row["run"] in done]


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let no other run into the folder. Raises OutputError while there is one."""
    with output_errors(home):
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                "{}: another watch is under way", home, remedy=Remedy.WAIT_FOR_WRITER
            ) from error
        yield
    finally:
        # The kernel lets go of it however a run ends.
        os.close(handle)


def _read(path: Path, columns: Mapping[str, type]) -> list[Row]:
    """The rows of a history, none where there is none. Raises OutputError for a damaged one."""
    if not path.exists():
        return []
    schema = table_of([], columns).schema
    try:
        return schemas.rows(schemas.read_parquet(path, schema))
    except (OSError, ValueError) as error:
        raise OutputError(
            "{} is no history of a watch: {}", path, Public(str(error).partition("\n")[0]),
            remedy=Remedy.COPY_AGAIN,
        ) from error  # fmt: skip


def _write(path: Path, table: Table) -> None:
    with whole_file(path, overwrite=True) as file:
        schemas.write_parquet(table, file)
