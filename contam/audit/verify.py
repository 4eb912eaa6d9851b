"""Seal a pack by digests, verify that it is as published, approve it, and compare two packs."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import time
from dataclasses import asdict, dataclass, fields
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.audit.facts import read_facts
from contam.benchmark.items import ItemName
from contam.detect.changes import Changes, Side, compare, differing
from contam.detect.match.variants import ways_to_read
from contam.detect.report import load_report
from contam.detect.show.reread import Library
from contam.errors import OutputError, UsageError
from contam.facts import counted
from contam.files.single import fingerprint, reading, write_file
from contam.kernels.tokens import CHARS, WORDS
from contam.tables import schemas
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.audit.facts import Facts
    from contam.detect.changes import FigureChange
    from contam.detect.report import Report

    Row = Mapping[str, Any]


_GIVE_AUDIT_FOLDER: Final = "give the folder that `contam audit run` wrote"


REPORT: Final = "report.json"
MANIFEST: Final = "manifest.json"
TIMES: Final = "times.json"
"""The only file of a pack that differs between equal audits."""

FORMAT: Final = 1


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a folder with its relative name, in order; links count as files."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix(), path


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> str:
    """Write the manifest of all other files in the folder; returns its own digest.

    facts  inputs, parameters and versions: JSON-able, equal for equal audits
    """
    tree = {
        "tool": "contam",
        "format": FORMAT,
        **facts,
        "environment": {"machine": platform.machine(), "system": platform.system()},
        "files": {
            name: fingerprint(path)
            for name, path in files_of(folder)
            if name not in {MANIFEST, TIMES}
        },
    }
    return _write_with_digest(folder / MANIFEST, tree)


def write_times(folder: Path, times: Mapping[str, Any]) -> None:
    """Write when, how long, and what finished stages were made of, with a digest of its own.

    The manifest must not depend on it: a stage depends on where its files are, a pack does not.
    """
    _write_with_digest(folder / TIMES, dict(times))


def read_verified(path: Path) -> dict[str, Any]:
    """A manifest or times file that is byte for byte what was written. Raises OutputError."""
    with reading(path, OutputError, _GIVE_AUDIT_FOLDER):
        if not path.exists():
            missing = OutputError("there is no {}", path, hint=_GIVE_AUDIT_FOLDER)
            raise missing if path.parent.exists() else missing.of_call()
        raw = path.read_bytes()
    try:
        tree = json.loads(raw)
    except ValueError as error:
        raise _altered(path) from error
    if not isinstance(tree, dict) or "digest" not in tree:
        raise _altered(path)
    digest = tree.pop("digest")
    if digest != _digest(tree) or raw != _with_digest(tree, digest):
        raise _altered(path)
    return {**tree, "digest": digest}


def _write_with_digest(path: Path, tree: Mapping[str, Any]) -> str:
    digest = _digest(tree)
    path.write_bytes(_with_digest(tree, digest))
    return digest


def _digest(tree: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode("ascii")).hexdigest()


def _with_digest(tree: Mapping[str, Any], digest: str) -> bytes:
    return (json.dumps({**tree, "digest": digest}, indent=1) + "\n").encode("ascii")


def _altered(path: Path) -> OutputError:
    return OutputError("{} was altered since the audit", path, hint="run the audit again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a check of a pack found.

    problems    files that are missing, new or altered, and evidence that is not in its document
    unread      why evidence could not be read again, each reason once
    n_evidence  rows that were read again;  n_unread  rows that were drawn and could not be
    """

    digest: str
    n_files: int
    n_evidence: int
    n_unread: int
    problems: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is altered and all evidence that was read is where it says."""
        return not self.problems


def verify_pack(
    folder: Path, *, digest: str | None = None, sample: int = 200, seed: int = 0
) -> Verified:
    """Hash all files of a pack again, and read a random sample of its evidence again.

    digest  what was signed off; another one is a problem

    Raises OutputError when the folder is not a pack or its manifest was altered.
    """
    manifest = read_verified(folder / MANIFEST)
    read_verified(folder / TIMES)
    problems = list(_changed_files(folder, manifest["files"]))
    if digest is not None and digest != manifest["digest"]:
        problems.append(f"the digest is {manifest['digest']}, not the one signed off")
    seen = 0
    missing: dict[str, int] = {}
    if not problems:
        # Altered tables are not opened: what they say would be somebody else's.
        facts = read_facts(folder / REPORT)
        report = load_report(folder / facts.verdicts)
        for problem, unread in _evidence(report, sample, seed):
            if unread:
                missing[unread] = missing.get(unread, 0) + 1
                continue
            seen += 1
            if problem:
                problems.append(problem)
    return Verified(
        digest=manifest["digest"],
        n_files=len(manifest["files"]) + 2,
        n_evidence=seen,
        n_unread=sum(missing.values()),
        problems=tuple(problems),
        unread=tuple(f"{reason} ({counted(n, 'row')})" for reason, n in missing.items()),
    )


def _changed_files(folder: Path, known: dict[str, Any]) -> Iterator[str]:
    found = dict(files_of(folder))
    for name in sorted({*known, *found} - {MANIFEST, TIMES}):
        if name not in found:
            yield f"{name} is missing"
        elif name not in known:
            yield f"{name} is not of this pack"
        else:
            with reading(found[name], OutputError):
                same = fingerprint(found[name]) == known[name]
            if not same:
                yield f"{name} was altered"


def _evidence(report: Report, sample: int, seed: int) -> Iterator[tuple[str, str]]:
    """(problem, why it could not be read) of every row that is drawn; both "" where it stands."""
    n = report.evidence.num_rows
    drawn = np.sort(np.random.default_rng(seed).permutation(n)[:sample])
    rows = schemas.rows(schemas.take(report.evidence, drawn))
    items = {ItemName.in_row(row): row for row in schemas.rows(report.items)}
    library = Library(report.run, report.folder)
    for row in rows:
        place = (row["shard"], row["row"])
        library.fetch([place])
        document = library.document(place)
        if document is None:
            yield "", library.problem(place) or "its document cannot be read"
            continue
        span = document.text[row["document_start"] : row["document_end"]]
        item = items[ItemName.in_row(row)]
        part = item[row["part"]]
        own = "\n".join(part) if isinstance(part, list) else part
        name = f"{row['benchmark']}/{row['item_id']} in {row['document_id']}"
        if row["answer_mark"]:
            stands = _is_mark(span, row["answer_mark"], item)
        elif own is None:
            stands = bool(span.strip())
        else:
            stands = _same(own[row["item_start"] : row["item_end"]], span)
        yield ("" if stands else f"{name}: the document does not say what the evidence says"), ""


def _is_mark(span: str, mark: str, item: dict[str, Any]) -> bool:
    """Whether a span is the letter or the number of the choice that is the item's answer."""
    if not item["choices"]:
        return bool(span.strip())
    right = [at for at, choice in enumerate(item["choices"]) if choice == item["answer"]]
    # Choices are counted from 0, as data sets count them.
    marks = [ascii_uppercase[at] if mark == "letter" else str(at) for at in right]
    return any(
        _equal(span.encode("utf-8", "replace"), right_mark.encode(), WORDS) for right_mark in marks
    )


def _same(item: str, document: str) -> bool:
    """Whether two spans are the same words or letters, whatever their case, marks and spaces.

    Words, for letters of another script that look alike are folded in words alone; letters, for a
    policy that counts characters has evidence that begins within a word.
    """
    theirs = document.encode("utf-8", "replace")
    ours = ways_to_read(item.encode("utf-8", "replace"))
    return any(_equal(text, theirs, unit) for unit in (WORDS, CHARS) for text in ours)


def _equal(text: bytes, other: bytes, unit: int) -> bool:
    tokens = tokenize_bytes(other, unit=unit).hashes
    return bool(len(tokens)) and np.array_equal(tokenize_bytes(text, unit=unit).hashes, tokens)


def checked_pack(folder: Path, digest: str | None = None) -> dict[str, Any]:
    """The manifest of a pack whose files are all as published; the source rows are not read.

    digest  the one that was signed off, which the pack must have

    Raises OutputError naming what is missing, new or altered.
    """
    found = verify_pack(folder, digest=digest, sample=0)
    if not found.holds:
        raise OutputError(
            "{} does not hold: {} ({})", folder, found.problems[0],
            counted(len(found.problems), "problem"),
            hint="take the pack that was published, or run the audit again",
        )  # fmt: skip
    return read_verified(folder / MANIFEST)


def checked_facts(folder: Path, digest: str | None = None) -> tuple[Facts, dict[str, Any]]:
    """The report of a pack that holds, and its manifest. Raises OutputError."""
    manifest = checked_pack(folder, digest)
    return read_facts(folder / REPORT), manifest


_MIDDLE: Final = ".approved-"
_END: Final = ".json"
_MOST_NAMED: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Who approved the pack of which digest, and when (UTC)."""

    pack: str
    digest: str
    name: str
    time: str


def approve(folder: Path, name: str, *, overwrite: bool = False) -> Path:
    """Write that somebody of this name approves a pack, in a file beside it; returns the file.

    Anybody can write any name there: a signature of the file proves who did.

    Raises OutputError when the pack is not as published or the file exists, UsageError for a name
    that cannot be read.
    """
    name = name.strip()
    named = "-".join(re.findall(r"[^\W_]+", name)).lower()
    if not named or not name.isprintable():
        raise UsageError("{!r} is not a name", name, hint='--name "Anna Ruiz"')
    folder = folder.resolve()
    approval = Approval(
        pack=folder.name,
        digest=checked_pack(folder)["digest"],
        name=name,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    path = folder.with_name(f"{folder.name}{_MIDDLE}{named[:_MOST_NAMED]}{_END}")
    write_file(path, (json.dumps(asdict(approval), indent=1) + "\n").encode(), overwrite=overwrite)
    return path


def read_approvals(folder: Path) -> dict[str, Approval]:
    """The approvals beside a pack, by the names of their files.

    Raises OutputError for a file of such a name that is no approval.
    """
    from pydantic import TypeAdapter, ValidationError

    folder = folder.resolve()
    begin = folder.name + _MIDDLE
    with reading(folder.parent, OutputError):
        beside = sorted(folder.parent.iterdir())
    found = {}
    for path in beside:
        if path.name.startswith(begin) and path.name.endswith(_END):
            with reading(path, OutputError):
                data = path.read_bytes()
            try:
                found[path.name] = TypeAdapter(Approval).validate_json(data)
            except ValidationError as error:
                hint = "`contam audit approve` writes one; remove this"
                raise OutputError("{} is not an approval", path, hint=hint) from error
    return found


_SCORE: Final = ("benchmark", "model", "metric", "policy")
_COVERAGE: Final = ("complete", "shards_read", "shards_expected", "rows", "n_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Changes):
    """All that changed from one audit to another.

    before, after  digests of the packs
    """

    before: str
    after: str
    status: tuple[str, str]
    scores: tuple[FigureChange, ...]
    ranks: tuple[FigureChange, ...]
    corpora: tuple[FigureChange, ...]
    studies: tuple[FigureChange, ...]


def compare_packs(before: Path, after: Path) -> Difference:
    """Set two packs side by side. Raises OutputError when one of them does not hold."""
    (first, digest, one), (second, other_digest, other) = _read(before), _read(after)
    found = compare(one, other)
    return Difference(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        before=digest,
        after=other_digest,
        status=(first.headline.status, second.headline.status),
        scores=_figures(first.scores, second.scores, ("full", "clean")),
        ranks=_figures(first.rankings, second.rankings, ("rank_full", "rank_clean")),
        corpora=differing(_corpora(first), _corpora(second)),
        studies=differing(_studies(first), _studies(second)),
    )


def _read(folder: Path) -> tuple[Facts, str, Side]:
    facts, manifest = checked_facts(folder)
    report = load_report(folder / facts.verdicts)
    side = Side(report, facts.tool.get("normaliser"), facts.policies)
    return facts, manifest["digest"], side


def _figures(
    first: Sequence[Row], second: Sequence[Row], names: Sequence[str]
) -> tuple[FigureChange, ...]:
    before, after = (
        {
            ", ".join(str(row[name]) for name in _SCORE): {name: row[name] for name in names}
            for row in rows
        }
        for rows in (first, second)
    )
    return differing(before, after)


def _corpora(facts: Facts) -> dict[str, Row]:
    return {
        corpus.name: {
            "stage": corpus.stage,
            "how": corpus.how,
            "guarantee_tokens": corpus.guarantee_tokens,
            **{name: corpus.coverage.get(name) for name in _COVERAGE},
        }
        for corpus in facts.corpora
    }


def _studies(facts: Facts) -> dict[str, Row]:
    """What each study found, and what it does not estimate."""
    return {
        study["name"]: {
            "found": study["finding"]["found"],
            **{f"not estimated, {one['what']}": one["reason"] for one in study["refused"]},
        }
        for study in facts.studies
    }
