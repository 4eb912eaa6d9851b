"""Check the corpora of an audit, by scan or index, and cache the stages that are finished."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from contam.audit.spec import given_paths, public, public_run
from contam.audit.verify import MANIFEST, TIMES, files_of, read_verified
from contam.benchmark import catalogue
from contam.benchmark.items import ItemName
from contam.benchmark.named import is_name
from contam.benchmark.paths import expanded
from contam.benchmark.read_files import read_benchmarks
from contam.corpus.formats.registry import NAMED
from contam.corpus.shards import shard_digest, survey
from contam.detect.indexed.indexes import IndexSet
from contam.detect.match.workers import worker_count
from contam.detect.plan import ScanParameters, plan_for
from contam.detect.policies.policy import get_policy
from contam.detect.query import query_a_little, query_opened, refuse_unanswerable
from contam.detect.report import RUN_FILE, write_report
from contam.detect.scan import open_corpus, scan_opened
from contam.detect.warm import warmup_scan
from contam.errors import BenchmarkError, LogError, OutputError, ShardError
from contam.files.disk import output_errors
from contam.files.listed import state_at
from contam.files.single import fingerprint, reading
from contam.index.manifest import content_id
from contam.index.open import Index
from contam.kernels.warm_up import compile_once
from contam.tables.memory import give_back
from contam.text.text_tables import NORMALISER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contam.audit.spec import AuditSpec, CorpusSpec
    from contam.benchmark.items import Benchmark
    from contam.detect.corpus import ScanProgress
    from contam.detect.parts.part_store import Division
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult


_RECORD: Final = ".stage.json"


class StageCache:
    """A folder beside the pack that holds finished stages until all are done.

    A stage is a folder under a name such as `checks/pretraining`, made from inputs that its key
    stands for. It is taken from here, or from an earlier pack, when key and every byte agree.

    tell      is told the name of each stage that begins; what it returns follows its progress
    progress  of the stage that is being made
    """

    def __init__(self, out: Path, tell: Callable[[str], ScanProgress | None]) -> None:
        self.out = out
        self.tell = tell
        self.progress: ScanProgress | None = None
        self.folder = out.with_name(f"{out.name}.work")
        self.keys: dict[str, str] = {}
        self.times: dict[str, Any] = {}
        self.reused: list[str] = []
        with output_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def stage(self, name: str, key: str, make: Callable[[Path], dict[str, Any]]) -> Path:
        """The folder of a finished stage; `make` fills it and returns its timings when it is not.

        Raises what `make` raises; a stage that failed leaves nothing.
        """
        folder = self.folder / name
        self.keys[name] = key
        if self._kept(name, key) or self._published(name, key):
            self.reused.append(name)
            return folder
        with output_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            draft = folder.with_name(f".{folder.name}.draft")
            shutil.rmtree(draft, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
        self.progress = self.tell(name)
        try:
            times = make(draft)
            with output_errors(folder):
                files = {entry: fingerprint(path) for entry, path in files_of(draft)}
                draft.replace(folder)
                record = json.dumps({"key": key, "times": times, "files": files})
                self._record(name).write_text(record, "ascii")
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            give_back()
        self.times[name] = times
        return folder

    def remove(self) -> None:
        """Remove the cache: all stages are in the pack."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _record(self, name: str) -> Path:
        return self.folder / f"{name}{_RECORD}"

    def _kept(self, name: str, key: str) -> bool:
        try:
            record = json.loads(self._record(name).read_bytes())
        except (OSError, ValueError):
            return False
        folder = self.folder / name
        if record.get("key") != key or not _intact(folder, record.get("files")):
            return False
        self.times[name] = record["times"]
        return True

    def _published(self, name: str, key: str) -> bool:
        """Take the stage out of an earlier pack, whose files are linked or copied, never moved."""
        try:
            manifest = read_verified(self.out / MANIFEST)
            known = read_verified(self.out / TIMES).get("stages", {})
        except OutputError:
            return False
        prefix = f"{name}/"
        files = {
            entry.removeprefix(prefix): digest
            for entry, digest in manifest.get("files", {}).items()
            if entry.startswith(prefix)
        }
        if known.get(name) != key or not files or not _intact(self.out / name, files):
            return False
        folder = self.folder / name
        with output_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            copy_tree(self.out / name, folder)
        self.times[name] = {"taken_from": "the earlier pack"}
        return True


def copy_tree(source: Path, target: Path) -> None:
    """A folder with the same files, which share their bytes where the disk allows it."""
    shutil.copytree(source, target, copy_function=_link)


def _link(source: str, target: str) -> str:
    with contextlib.suppress(OSError):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


def _intact(folder: Path, files: object) -> bool:
    try:
        return (
            isinstance(files, dict)
            and {name: fingerprint(path) for name, path in files_of(folder)} == files
        )
    except OSError:
        return False


FROM_LOGS = "items-from-logs.jsonl"
"""The benchmark that was made of logs, where an audit had to make one."""


@dataclass(frozen=True, slots=True)
class Items:
    """The benchmarks of an audit, by name, and the day each came out where the audit says it.

    natural  benchmarks whose items are younger than the corpora: they serve as decoys
    """

    benchmarks: tuple[Benchmark, ...]
    released: dict[str, str]
    natural: tuple[Benchmark, ...] = ()


def log_files(spec: AuditSpec) -> dict[str, Any]:
    """The files that the paths of the logs lead to, each with its digest.

    Raises LogError for a path that leads nowhere, or a file that cannot be read.
    """
    found: dict[str, Any] = {}
    for path in expanded((*spec.logs.paths, *spec.logs.field), "log", LogError):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file():
                with reading(file, LogError):
                    found[str(file)] = fingerprint(file)
    return found


def read_items(spec: AuditSpec, scratch: Path, logs: Mapping[str, Any]) -> Items:
    """All benchmarks of the audit, each read as its own entry says.

    scratch  folder for the items that are taken out of logs
    logs     what `log_files` says: other logs have other items

    Raises BenchmarkError also for two items under one name in different entries.
    """
    reported: list[Benchmark] = []
    natural: list[Benchmark] = []
    released: dict[str, str] = {}
    for entry in spec.benchmarks:
        own = entry.from_logs
        paths = [str(_from_logs(spec, scratch, logs))] if own else given_paths(entry)
        read = read_benchmarks(
            paths,
            mapping=entry.map or None,
            ignore=entry.ignore,
            name=entry.name,
            split=entry.split,
            include_path=entry.include_path,
            secret=spec.no_text,
        )
        if own:
            # Where the audit keeps its working files says nothing of the benchmark.
            read = tuple(
                replace(
                    benchmark,
                    items=tuple(replace(item, source=FROM_LOGS) for item in benchmark.items),
                    sources=tuple(replace(source, path=FROM_LOGS) for source in benchmark.sources),
                )
                for benchmark in read
            )
        (natural if entry.decoys else reported).extend(read)
        for benchmark in read:
            known = catalogue.released(benchmark) if any(map(is_name, paths)) else ""
            if day := entry.released.isoformat() if entry.released else known:
                released[benchmark.name] = day
    count = Counter(ItemName.of(i) for benchmark in (*reported, *natural) for i in benchmark.items)
    name, n = count.most_common(1)[0]
    if n > 1:
        raise BenchmarkError(
            "{}: item {} comes from two entries of the audit",
            name[0],
            name[2],
            hint="name each benchmark once, or tell them apart by name or split",
        )
    return Items(
        tuple(sorted(reported, key=lambda benchmark: benchmark.name)),
        released,
        tuple(sorted(natural, key=lambda benchmark: benchmark.name)),
    )


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks corpora as stages of an audit: what its checks have in common."""

    stage_cache: StageCache
    workers: int | None
    division: Division | None = None

    def make_key(self, spec: AuditSpec, corpus: CorpusSpec, benchmarks: Sequence[Benchmark]) -> str:
        """What decides the answer of this check: equal keys give equal folders."""
        places = public([*corpus.paths, *corpus.index], spec)
        return digest_of(
            {
                "corpus": [asdict(corpus), corpus.columns, places],
                "shards": _shards(corpus),
                "benchmarks": [
                    [each.name, [[i.split, i.item_id, i.source, i.line] for i in each.items]]
                    for each in benchmarks
                ],
                "files": [
                    [s.path, public(s.path, spec), s.sha256, s.fields]
                    for benchmark in benchmarks
                    for s in benchmark.sources
                ],
                "policies": [get_policy(name).spec.fingerprint() for name in spec.policies],
                "normaliser": NORMALISER,
                "max_evidence": spec.max_evidence,
                "no_text": spec.no_text,
            }
        )

    def check(
        self,
        stage: str,
        key: str,
        spec: AuditSpec,
        corpus: CorpusSpec,
        benchmarks: Sequence[Benchmark],
    ) -> None:
        """Make the stage, unless one with this key is finished. Raises as scans and queries do."""

        def make(draft: Path) -> dict[str, Any]:
            result = self._result(spec, corpus, benchmarks)
            result.run = public_run(result.run, spec, corpus.name)
            return write_result(result, draft)

        self.stage_cache.stage(stage, key, make)

    def _result(
        self, spec: AuditSpec, corpus: CorpusSpec, benchmarks: Sequence[Benchmark]
    ) -> ScanResult:
        """Scan a corpus, or ask its index, for every item."""
        progress = self.stage_cache.progress
        how: dict[str, Any] = {
            "workers": worker_count(self.workers),
            "progress": progress,
            "started": time.time(),
        }

        def plan(unit: str) -> Plan:
            parameters = ScanParameters(
                policies=spec.policies,
                unit=unit,
                max_evidence=spec.max_evidence,
                allow_missing=corpus.allow_missing,
                keep_text=not spec.no_text,
                text=corpus.text,
                columns=corpus.columns,
                exclude=corpus.exclude,
            )
            return plan_for(benchmarks, parameters)

        if corpus.index:
            indexes = IndexSet.open(list(corpus.index))
            compile_once("query", query_a_little, progress)
            wanted = plan(indexes.unit)
            refuse_unanswerable(wanted.policies, indexes.recipe)
            result = query_opened(indexes, wanted, **how)
            # The usual id says where the corpus was, too.
            result.run["index"]["ids"] = [content_id(index.manifest) for index in indexes.indexes]
            return result
        compile_once("scan", warmup_scan, progress)
        wanted = plan("word")
        opened = open_corpus(list(corpus.paths), wanted.parameters, division=self.division)
        return scan_opened(opened, wanted, division=self.division, **how)


def write_result(result: ScanResult, draft: Path) -> dict[str, Any]:
    """A result folder without its timings, which are returned."""
    result.run.setdefault("timings", {})
    write_report(result, draft)
    return without_times(draft)


def without_times(folder: Path) -> dict[str, Any]:
    """Take the timings out of the run file of a result; they are the pack's, in one place."""
    path = folder / RUN_FILE
    run = json.loads(path.read_bytes())
    times: dict[str, Any] = run.pop("timings", {})
    path.write_text(json.dumps(run, indent=2) + "\n", "ascii")
    return times


def digest_of(value: object) -> str:
    """SHA-256 of a JSON-able value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _shards(corpus: CorpusSpec) -> list[Any]:
    """The state of the corpus, as far as it is known without reading it.

    Of an index also that of the shards it answers for: it cannot vouch for one that changed.
    """
    found: list[Any]
    if corpus.index:
        indexes = [Index.open(name) for name in corpus.index]
        found = [index.id for index in indexes]
        found += [
            [record.name, record.uri, _state(record.uri), index.states.get(record.uri)]
            for index in indexes
            for record in index.records
            if record is not None
        ]
        return found
    found = []
    for shard in survey(list(corpus.paths))[0]:
        try:
            digest = shard_digest(shard)
        except ShardError:
            digest = "unreadable"
        beside = NAMED[shard.format].beside(str(shard.path))
        found.append([shard.name, shard.uri, digest, _state(shard.uri), beside])
    return found


def _state(uri: str) -> list[int | str]:
    """What changes about a file when somebody writes it; the time of change cannot be set back."""
    try:
        found = state_at(uri)
    except OSError:
        return []
    if found.version:
        return [found.size, found.version]
    return [found.size, found.modified_ns, found.changed_ns, found.inode]


def _from_logs(spec: AuditSpec, scratch: Path, logs: Mapping[str, Any]) -> Path:
    from contam.rescore.logs.read import benchmark_of, find_logs, offering, write_items

    # An audit that was stopped may have left those of other logs.
    key = digest_of([logs, spec.logs.columns, spec.logs.skip_damaged])
    path = scratch / f"{key[:16]}-{FROM_LOGS}"
    if not path.exists():
        with offering("skip_damaged = true under [logs] goes on without such logs"):
            logged = find_logs(
                list(spec.logs.paths),
                columns=spec.logs.columns or None,
                skip_damaged=spec.logs.skip_damaged,
            )
        found = benchmark_of(logged.logs)
        write_items(found.rows, path)
    return path
