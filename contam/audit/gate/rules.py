"""Read RULES.toml, what a release must meet, and refuse rules that cannot be judged."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from annotated_types import Ge, Le
from pydantic import Field, TypeAdapter, ValidationError

from contam.audit.spec import TOGETHER, describe_mistake, first_wrong, read_toml, spec_error
from contam.errors import ConfigError, Public

ALL: Final = "*"
_STRICT: Final = {"extra": "forbid"}
Percent = Annotated[float, Ge(0), Le(100)]
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What all rules have.

    name       what a report calls it; made of its keys when empty
    benchmark  the one it is about; "*" is each
    policy     the one that judges; "*" is each, None the first of the audit
    """

    __pydantic_config__: ClassVar = _STRICT

    name: str = ""
    benchmark: str = ALL
    policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedShare(Rule):
    """The share of flagged items, of all items.

    count_accepted  whether flags that a person accepted count, too
    unchecked       "count": what could not be checked may be flagged; "ignore": it is left out
    """

    check: Literal["flagged_share"]
    most_percent: Percent
    corpus: str = TOGETHER
    count_accepted: bool = False
    unchecked: Literal["count", "ignore"] = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGap(Rule):
    """How far the score on all items is from that on clean items.

    most_points  hundredths of the metric, in either direction
    bound        whether the far end of the 95 % interval must lie within, not the estimate alone
    least_clean  clean items without which nothing is judged
    """

    check: Literal["gap"]
    most_points: Annotated[float, Ge(0)]
    models: Names = ()
    metric: str | None = None
    bound: bool = False
    least_clean: Annotated[int, Ge(1)] = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FullCoverage(Rule):
    """All shards of all corpora were read; the named corpora are among them."""

    check: Literal["coverage"]
    corpora: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leads(Rule):
    """No lead of these models on all items is gone on the clean ones; none named are `ours`."""

    check: Literal["leads"]
    models: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanItems(Rule):
    """Enough items are clean."""

    check: Literal["clean_items"]
    least: Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceLimit(Rule):
    """The estimated share of flags that are chance."""

    check: Literal["fdr"]
    most_percent: Percent


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFlags(Rule):
    """Items that an earlier pack did not flag.

    baseline  that pack, relative to the rules
    """

    check: Literal["new_flags"]
    baseline: str
    most: Annotated[int, Ge(0)] = 0
    count_accepted: bool = False


AnyRule = FlaggedShare | ScoreGap | FullCoverage | Leads | CleanItems | ChanceLimit | NewFlags


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a file, the pack it names, and the file of what a person accepted."""

    rules: tuple[AnyRule, ...]
    pack: str | None = None
    accept: str | None = None


def load_rules(path: str | Path) -> Rules:
    """Read RULES.toml; paths in it are relative to its folder.

    Raises ConfigError naming the file and the key; a file without a rule passes nothing.
    """
    path = Path(path)
    tree = read_toml(path, hint="give a file")
    if unknown := set(tree) - {"rule", "pack", "accept"}:
        raise ConfigError(
            "{}: there is no {}", path, min(unknown), hint="keys: pack, accept, [[rule]]"
        )
    rules = _parse(tree.get("rule", []), str(path))
    if not rules:
        raise ConfigError("{} has no rule", path, hint="add a [[rule]]")
    base = path.resolve().parent
    named: dict[str, str] = {}
    for name in ("pack", "accept"):
        if name in tree:
            if not isinstance(tree[name], str):
                raise ConfigError("{}: {} must be a path, as text", path, Public(name))
            named[name] = _absolute(tree[name], base)
    return Rules(
        tuple(
            replace(rule, baseline=_absolute(rule.baseline, base))
            if isinstance(rule, NewFlags)
            else rule
            for rule in rules
        ),
        **named,
    )


@cache
def _adapter() -> TypeAdapter[tuple[AnyRule, ...]]:
    kind: Any = Annotated[AnyRule, Field(discriminator="check")]
    return TypeAdapter(tuple[kind, ...])


def _parse(values: Any, origin: str) -> tuple[AnyRule, ...]:  # noqa: ANN401 - not yet checked
    if not isinstance(values, list):
        raise spec_error(origin, "write [[rule]], with two brackets")
    try:
        found = _adapter().validate_python(values)
    except ValidationError as error:
        first = first_wrong(error)
        where, *rest = first["loc"]
        place = ", ".join(filter(None, [f"rule {int(where) + 1}", ".".join(map(str, rest))]))
        hint = "docs/guides/audit.md names every key"
        raise spec_error(origin, "{}: {}", place, describe_mistake(first), hint=hint) from error
    return found


def _absolute(path: str, base: Path) -> str:
    return os.path.normpath(base / path)
