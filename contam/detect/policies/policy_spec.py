"""Define what a policy declares: what it matches, how it adds up, where it flags."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast, get_args

from contam.benchmark.items import PARTS
from contam.detect.labels import LABELS
from contam.errors import PolicyError, Statement

if TYPE_CHECKING:
    from collections.abc import Mapping

Unit = Literal["word", "char"]
Scope = Literal["any document", "one document"]
Comparison = Literal["at least", "more than"]
Confidence = Literal["source", "paper", "secondary"]
ShortItems = Literal["none", "question", "item"]
Value = int | float | str | bool

# The rest is prose or a name: two policies that differ only there judge alike.
_JUDGING: Final = (
    "base",
    "version",
    "unit",
    "n",
    "scope",
    "aggregation",
    "parts",
    "thresholds",
    "comparison",
    "parameters",
    "constants",
)
_FIXED_BY_BASE: Final = ("base", "version", "unit", "scope", "aggregation", "presets", "constants")
#: What a file may change; what else it says, as the record of a run does, is that of the base.
_CHANGEABLE: Final = (
    "id",
    "title",
    "description",
    "confidence",
    "n",
    "parts",
    "thresholds",
    "comparison",
    "parameters",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTraits:
    """What the rest of contam must know of a policy that its spec does not say.

    monotone          whether more evidence can only raise a label: what it flags by part of the
                      evidence stays flagged; False is safe, and leaves more items open in an index
    short_items       what it looks for although that is shorter than its shortest run: nothing,
                      every `question`, or an `item` of which every judged part is shorter
    needs_weights     whether it adds up what tokens weigh, not how many there are
    sees_variants     whether what stands there without an item's punctuation counts
                      (contam.detect.match.variants)
    reads_text        whether it reads documents itself, and so has a `reader`
    rephrasings       whether it looks for rephrased questions, and so has `rare_words`
    ours              whether it is a definition of ours: lists say so in place of `confidence`
    least_run         the parameter that may make its shortest run shorter than n, if any
    sufficient_share  the parameter that gives the share of a question that counts whatever it
                      weighs, if any
    """

    monotone: bool
    short_items: ShortItems
    needs_weights: bool
    sees_variants: bool
    reads_text: bool
    rephrasings: bool = False
    ours: bool = False
    least_run: str = ""
    sufficient_share: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """One definition of contamination, in full.

    id           name on the command line and in verdicts; `base:preset` for a preset
    base         the published definition that does the judging; empty means `id` itself
    version      changes whenever the same evidence may be judged differently
    confidence   how well the original is known; "secondary" implies `approximate`
    n            length of a gram, run or window, in tokens of `unit`
    aggregation  how what was found adds up, in words; the score of "any run" is a length in tokens,
                 that of all others a share
    parts        the item parts that are judged
    thresholds   (score, label) in rising order; below the first an item is clean
    comparison   how a score must compare with a threshold to earn its label
    count_rule   which documents count in `n_documents`, in words
    too_short    what happens to items that cannot be judged, in words
    parameters   what only this definition has, by name
    constants    numbers of the matching that its verdicts depend on, by name; a file cannot change
                 them
    """

    id: str
    title: str
    description: str
    source: str
    confidence: Confidence
    unit: Unit
    n: int
    scope: Scope
    aggregation: str
    parts: tuple[str, ...]
    thresholds: tuple[tuple[float, str], ...]
    count_rule: str
    too_short: str
    approximate: bool = False
    comparison: Comparison = "at least"
    version: str = "1"
    parameters: tuple[tuple[str, Value], ...] = ()
    constants: tuple[tuple[str, Value], ...] = ()
    presets: tuple[str, ...] = ()
    base: str = ""

    def __post_init__(self) -> None:
        if not self.base:
            object.__setattr__(self, "base", self.id)
        for name in ("id", "title", "description"):
            text = getattr(self, name)
            if not isinstance(text, str) or not text:
                raise self._refused("{} must be a text", name)
        for name, kind in (("comparison", Comparison), ("confidence", Confidence)):
            if (value := getattr(self, name)) not in get_args(kind):
                known = ", ".join(get_args(kind))
                raise self._refused("{} is {!r}, not one of {}", name, value, known)
        if type(self.n) is not int or self.n < 1:
            raise self._refused("n must be a whole number from 1")
        if not self.parts or sorted(set(self.parts) & set(PARTS)) != sorted(self.parts):
            raise self._refused("parts must be some of {}, each once", ", ".join(PARTS))
        self._check_thresholds()
        if self.approximate and "approximate" not in self.description.lower():
            raise self._refused("the description of an approximate policy must say so")

    def _check_thresholds(self) -> None:
        scores = [score for score, _ in self.thresholds]
        severities = [LABELS.index(name) for _, name in self.thresholds if name in LABELS[1:3]]
        if (
            not scores
            or len(severities) != len(scores)
            or severities != sorted(set(severities))
            or scores != sorted(set(scores))
        ):
            raise self._refused("thresholds must rise from suspect to contaminated, each once")
        if self.aggregation == "any run":
            if scores != [float(self.n)] or self.comparison != "at least":
                raise self._refused("a run policy flags from n, {}, and not by {}", self.n, scores)
        elif not all(0 <= score <= 1 for score in scores):
            raise self._refused("thresholds are shares from 0 to 1, not {}", scores)
        elif self.comparison == "more than" and scores[-1] == 1:
            raise self._refused("nothing is more than the whole, a threshold of 1")

    def _refused(self, fact: str, *facts: object) -> PolicyError:
        said = Statement(fact, *facts)
        return PolicyError(
            "policy {!r}: {}", self.id, said, hint="`contam policies` shows the known ones in full"
        )

    def parameter(self, name: str) -> Value:
        """The value of a parameter of this definition; PolicyError where it has none so named."""
        for known, value in self.parameters:
            if known == name:
                return value
        raise self._refused("there is no parameter {!r}", name)

    def number(self, name: str) -> float:
        """The value of a parameter that is a number."""
        value = self.parameter(name)
        if isinstance(value, str):
            raise self._refused("parameter {} must be a number, not {!r}", name, value)
        return float(value)

    def threshold(self, label: str) -> float:
        """The score that earns this label; PolicyError where the policy never gives it."""
        for score, known in self.thresholds:
            if known == label:
                return score
        raise self._refused("it never says {!r}", label)

    def to_dict(self) -> dict[str, object]:
        """A plain tree for JSON or TOML, which is a policy file, too."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "parts": list(self.parts),
            "presets": list(self.presets),
            "thresholds": {label: score for score, label in self.thresholds},
            "parameters": dict(self.parameters),
            "constants": dict(self.constants),
        }

    def fingerprint(self) -> str:
        """16 hex digits of all that the definition decides a verdict by: equal ones judge alike.

        What a run chooses (unit, seed, min_run) and the version of the normaliser are not in it.
        """
        tree = self.to_dict()
        # No constants: nothing of them to tell apart.
        judging = {name: tree[name] for name in _JUDGING if name != "constants" or tree[name]}
        text = json.dumps(judging, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, other: Self) -> str:
        """What another definition with this base judges by that this one does not, in words."""
        mine = {**self.to_dict(), **dict(self.parameters)}
        told = [
            f"{name} = {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in {**other.to_dict(), **dict(other.parameters)}.items()
            if name in ("n", "parts", "comparison", *dict(self.parameters)) and value != mine[name]
        ]
        if self.thresholds != other.thresholds and self.aggregation != "any run":
            told += [f"{label} from {score:g}" for score, label in other.thresholds]
        return ", ".join(told)

    def with_changes(self, changes: Mapping[str, object]) -> Self:
        """This definition with some fields replaced; parameters not named keep their values.

        In a run policy n and the threshold are one figure: changing one changes both.
        """
        tree = self.to_dict()
        if unknown := sorted(set(changes) - set(tree)):
            raise PolicyError(
                "a policy has no {}",
                ", ".join(unknown),
                hint=Statement("it has {}", ", ".join(sorted(tree))),
            )
        for name in _FIXED_BY_BASE:
            if name in changes and changes[name] != tree[name]:
                raise PolicyError(
                    "{} of {!r} cannot be changed: it is what the policy is",
                    name,
                    self.id,
                    hint="n, parts, thresholds, comparison and parameters can be",
                )
        changed: dict[str, Any] = {name: changes[name] for name in _CHANGEABLE if name in changes}
        if "parts" in changed:
            changed["parts"] = _read_names(changed["parts"])
        if "thresholds" in changed:
            changed["thresholds"] = _read_thresholds(changed["thresholds"])
        if self.aggregation == "any run":
            if "n" in changed and "thresholds" not in changed:
                changed["thresholds"] = _read_thresholds({"contaminated": changed["n"]})
            elif "thresholds" in changed and "n" not in changed:
                changed["n"] = int(changed["thresholds"][0][0])
        own = self._changed_parameters(as_table("parameters", changed.get("parameters", {})))
        return replace(self, **{**changed, "parameters": tuple(own.items())})

    def _changed_parameters(self, changes: Mapping[str, object]) -> dict[str, Any]:
        values: dict[str, Any] = dict(self.parameters)
        for name, new in changes.items():
            if name not in values:
                known = ", ".join(values) or "none"
                raise PolicyError(
                    "policy {!r} has no parameter {!r}",
                    self.id,
                    name,
                    hint=Statement("it has: {}", known),
                )
            old = values[name]
            alike = type(new) is type(old) or (type(old) is float and type(new) is int)
            if not alike or (isinstance(new, float) and not math.isfinite(new)):
                raise PolicyError(
                    "parameter {} cannot be {!r}",
                    name,
                    new,
                    hint=Statement("the default is {}", old),
                )
            values[name] = float(new) if isinstance(new, int) and type(old) is float else new
        return values


def as_table(name: str, value: object) -> Mapping[str, object]:
    """The value as a table of names; PolicyError where it is none."""
    if not isinstance(value, dict):
        raise PolicyError("{} of a policy must be a table of names and values", name)
    return cast("Mapping[str, object]", value)


def _read_thresholds(value: object) -> tuple[tuple[float, str], ...]:
    matches: list[tuple[float, str]] = []
    for label, score in as_table("thresholds", value).items():
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise PolicyError("the threshold of {} must be a number, not {!r}", label, score)
        if not math.isfinite(score):
            raise PolicyError("the threshold of {} cannot be {}", label, score)
        matches.append((float(score), label))
    if not matches:
        raise PolicyError("a policy needs a threshold", hint="thresholds = {contaminated = 0.5}")
    rank = {label: at for at, label in enumerate(LABELS)}
    return tuple(sorted(matches, key=lambda match: (match[0], rank.get(match[1], -1))))


def _read_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise PolicyError("a list of names was expected, not {!r}", value)
    return tuple(value)
