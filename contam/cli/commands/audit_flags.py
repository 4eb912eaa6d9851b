"""Turn the options of `contam audit run` into tables of AUDIT.toml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.cli.options import split_names
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Table = dict[str, Any]


def spec_values(
    *,
    corpora: Mapping[str, Sequence[str]],
    stages: Sequence[str],
    text: str | None,
    allow_missing: bool,
    benchmarks: Sequence[str],
    released: Sequence[str],
    logs: Sequence[str],
    ours: Sequence[str],
    references: Sequence[str],
) -> Table:
    """Fields of `contam.audit.spec.AuditSpec`.

    corpora   "paths" and "index" -> what was given, each with or without NAME= before it
    stages    [NAME=]WORD;  released  [PATH=]DATE, the path of a benchmark as it was given

    Raises UsageError for a name or path that nothing else has.
    """
    found = _corpora(corpora)
    shared: Table = {"allow_missing": allow_missing}
    if text is not None:
        shared["text"] = text
    for name, word in _pairs(stages, [table["name"] for table in found], "--stage", "corpus"):
        for table in found:
            table.update({"stage": word} if name in {table["name"], None} else {})
    items: list[Table] = [{"paths": [path]} for path in benchmarks]
    if not items and logs:
        items = [{"from_logs": True}]
    for path, day in _pairs(released, list(benchmarks), "--released", "benchmark"):
        for item in items:
            item.update({"released": day} if path in {None, *item.get("paths", ())} else {})
    return {
        "corpora": [{**table, **shared} for table in found],
        "benchmarks": items,
        "logs": {
            "paths": list(logs),
            "ours": split_names(list(ours)),
            "references": split_names(list(references)),
        },
    }


def _corpora(given: Mapping[str, Sequence[str]]) -> list[Table]:
    found: list[Table] = []
    for key, values in given.items():
        for value in values:
            name, equals, path = value.partition("=")
            where = path if equals else value
            named = name if equals else Path(value).resolve().name.split(".")[0]
            same = [table for table in found if table["name"] == named and equals and key in table]
            if same:
                same[0][key].append(where)
            else:
                found.append({"name": named, key: [where]})
    return found


def _pairs(
    given: Sequence[str], known: Sequence[str], option: str, what: str
) -> list[tuple[str | None, str]]:
    """(name, value) of each, those without a name first, so that the others outweigh them."""
    pairs: list[tuple[str | None, str]] = []
    for value in given:
        name, equals, rest = value.rpartition("=")
        if equals and name not in known:
            raise UsageError(
                f"{option} names {name}, which is no {what} here",
                hint=f"there is: {', '.join(known) or 'none'}",
            )
        pairs.append((name if equals else None, rest))
    return sorted(pairs, key=lambda pair: pair[0] is not None)
