"""Read log-probabilities from JSON lines, one record a shard or text, every number checked."""

from __future__ import annotations

import math
import re
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.dates import span_of
from contam.errors import LogError, Place, Public, Remedy, UsageError
from contam.rescore.stats.average_ranks import average_ranks
from contam.study.inputs import file_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Row = Mapping[str, Any]
    Records = str | Path | Sequence[Row]

_HAIR: Final = 1e-6
#: Tokens that a shuffled shard may have more or fewer: texts join differently at their ends.
_TOKENS_APART: Final = 0.02
_KINDS: Final = ("canonical", "shuffled")
_TWO: Final = 2
#: Standard errors of a rank correlation from which an order is none by chance.
_ORDERED: Final = 4.0
_MOST_NUMBERED: Final = 0.9
_NUMBER: Final = re.compile(r"\d{1,15}")


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Of one model: float64[shards] in the published order, float64[shards, orders] shuffled."""

    names: tuple[str, ...]
    canonical: Floats
    shuffled: Floats
    n_tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Text:
    """One text under one model; None for what the record does not hold.

    logprob    float64[tokens];  mu, sigma  mean and s.d. of the log-probability over the vocabulary
    reference  mean log-probability under another model;  lowercase  of the text in lower case
    n_bytes    of the text compressed by zlib;  day  of the text, as a proleptic ordinal
    """

    item: str
    logprob: Floats
    mu: Floats | None
    sigma: Floats | None
    reference: float | None
    lowercase: float | None
    n_bytes: int | None
    member: bool | None
    day: int | None


@dataclass(slots=True)
class _Line:
    """A record and its place."""

    row: Row
    place: str

    def error(self, said: str, *facts: object) -> LogError:
        return LogError(
            f"{{}}: {said}", Place(self.place), *facts, remedy=Remedy.REPAIR_ROW_OR_LEAVE_OUT
        )

    def text(self, name: str) -> str:
        value = self.row.get(name)
        if value is None or isinstance(value, bool | float | list | dict) or str(value) == "":
            raise self.error("there is no {} that is a text or whole number", Public(name))
        return str(value)

    def number(self, name: str) -> float:
        return self.checked(name, self.row.get(name))

    def checked(self, name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error("{} is {!r}, which is no number", Public(name), str(value)[:40])
        if not math.isfinite(value):
            raise self.error("{} is not finite", Public(name))
        return float(value)

    def below_zero(self, name: str, value: float) -> float:
        """A log-probability; what rounding leaves above 0 is 0."""
        if value > _HAIR:
            raise self.error("{} is {}, and no log-probability is above 0", Public(name), value)
        return min(value, 0.0)

    def count(self, name: str) -> int:
        value = self.number(name)
        if value < 1 or value != round(value):
            raise self.error("{} is {}, which is no number of tokens", Public(name), value)
        return int(value)

    def array(self, name: str, n: int = 0) -> Floats:
        """A list of numbers, as many as n where that is given."""
        values = self.row.get(name)
        if not isinstance(values, list) or not values:
            raise self.error("{} is no list of numbers", Public(name))
        if n and len(values) != n:
            raise self.error("{} has {} numbers for {} tokens", Public(name), len(values), n)
        return np.array([self.checked(name, value) for value in values], np.float64)

    def logprobs(self, name: str, n: int = 0) -> Floats:
        found = self.array(name, n)
        self.below_zero(name, float(found.max()))
        return np.minimum(found, 0.0)

    def mean(self, name: str) -> float | None:
        """The mean of a list of log-probabilities, or one number that is their mean."""
        if self.row.get(name) is None:
            return None
        if isinstance(self.row[name], list):
            return float(self.logprobs(name).mean())
        return self.below_zero(name, self.number(name))


def _lines(given: Records, called: str) -> tuple[list[_Line], dict[str, Any]]:
    if isinstance(given, str | Path):
        file = file_of(given)
        lines = [_Line(row, f"{file.path}:{number}") for number, row in file.lines]
        source = {"set": called, "path": str(file.path), "sha256": file.digest}
    else:
        lines = [_Line(row, f"{called}, record {at}") for at, row in enumerate(given, 1)]
        source = {"set": called, "path": f"memory:{called}"}
    if not lines:
        raise LogError("{}: there is no record", source["path"], remedy=Remedy.IS_FILE_WHOLE)
    return lines, {**source, "rows": len(lines)}


def _by_model(lines: Sequence[_Line]) -> Iterator[tuple[str, list[_Line]]]:
    found: defaultdict[str, list[_Line]] = defaultdict(list)
    for line in lines:
        found["" if line.row.get("model") is None else line.text("model")].append(line)
    return iter(sorted(found.items()))


def read_shards(given: Records) -> tuple[dict[str, Shards], dict[str, Any]]:
    """Model -> its `Shards`, and what run.json says of the file.

    Records {shard, kind, perm, logprob, n_tokens[, model]}.
    """
    lines, source = _lines(given, "shards")
    return {model: _shards(own) for model, own in _by_model(lines)}, source


def _shards(lines: Sequence[_Line]) -> Shards:
    canonical: dict[str, float] = {}
    shuffled: dict[str, dict[str, float]] = {}
    n_tokens: dict[str, tuple[int, _Line]] = {}
    for line in lines:
        name, kind = line.text("shard"), line.text("kind")
        if kind not in _KINDS:
            raise line.error("kind is {!r}, neither canonical nor shuffled", kind)
        logprob, n = line.below_zero("logprob", line.number("logprob")), line.count("n_tokens")
        known, _ = n_tokens.setdefault(name, (n, line))
        if abs(n - known) > max(1, _TOKENS_APART * known):
            raise line.error("{} tokens, and {} in another order of shard {!r}", n, known, name)
        if kind == _KINDS[0]:
            if name in canonical:
                raise line.error("a second canonical order of shard {!r}", name)
            canonical[name] = logprob
            continue
        own = shuffled.setdefault(name, {})
        if (perm := line.text("perm")) in own:
            raise line.error("order {!r} of shard {!r} is here again", perm, name)
        own[perm] = logprob
    where = Place(lines[0].place)
    if len(canonical) < _TWO:
        raise LogError("{}: the test needs two shards, and there is {}", where, len(canonical))
    orders = sorted(set().union(*shuffled.values()))
    if not orders:
        raise LogError("{}: there is no shuffled order to compare with", where)
    for name in {**canonical, **shuffled}:
        if name not in canonical or sorted(shuffled.get(name, ())) != orders:
            raise LogError(
                "{}: shard {!r} lacks an order that another shard has", where, name,
                remedy=Remedy.IS_FILE_WHOLE,
            )  # fmt: skip
    names = tuple(canonical)
    return Shards(
        names,
        np.array([canonical[name] for name in names]),
        np.array([[shuffled[name][perm] for perm in orders] for name in names]),
        tuple(n_tokens[name][0] for name in names),
    )


def read_texts(given: Records) -> tuple[dict[str, list[Text]], dict[str, Any]]:
    """Model -> its `Text`s, and what run.json says of the file.

    Records {item, logprob: [...]}, and further tokens, mu, sigma, ref_logprob, lower_logprob, text,
    member, date, model.
    """
    lines, source = _lines(given, "texts")
    found = {}
    for model, own in _by_model(lines):
        texts: dict[str, Text] = {}
        for line in own:
            text = _text(line)
            if text.item in texts:
                raise line.error("item {!r} is here again", text.item)
            texts[text.item] = text
        found[model] = list(texts.values())
    return found, source


def _text(line: _Line) -> Text:
    row = line.row
    tokens = row.get("tokens")
    n = len(tokens) if isinstance(tokens, list) else 0 if tokens is None else line.count("tokens")
    logprob = line.logprobs("logprob", n)
    both = [row.get(name) is not None for name in ("mu", "sigma")]
    if both[0] != both[1]:
        raise line.error("mu and sigma come together")
    mu = line.logprobs("mu", len(logprob)) if both[0] else None
    sigma = line.array("sigma", len(logprob)) if both[0] else None
    if sigma is not None and sigma.min() <= 0:
        raise line.error("a sigma is not above 0")
    member, date = row.get("member"), row.get("date")
    if member is not None and not isinstance(member, bool) and member not in (0, 1):
        raise line.error("member is {!r}, neither true nor false", str(member)[:40])
    when = span_of(str(date)) if date is not None else None
    if date is not None and when is None:
        raise line.error("{!r} is no date such as 2024-01-31", str(date)[:40])
    words = row.get("text")
    if words is not None and not isinstance(words, str):
        raise line.error("text is no text")
    return Text(
        item=line.text("item"),
        logprob=logprob,
        mu=mu,
        sigma=sigma,
        reference=line.mean("ref_logprob"),
        lowercase=line.mean("lower_logprob"),
        n_bytes=len(zlib.compress(words.encode())) if words else None,
        member=None if member is None else bool(member),
        day=None if when is None else when[0].toordinal(),
    )


def ordered(given: Records) -> tuple[str, dict[str, Any]]:
    """Why the items of a file could not as well stand in another order, "" where nothing says so.

    given  records {text} in the published order
    """
    lines, source = _lines(given, "items")
    texts = [line.text("text") for line in lines]
    if len(set(texts)) < len(texts):
        return f"{len(texts) - len(set(texts))} items are there twice", source
    if len(texts) < _TWO:
        raise UsageError("{}: one item has no order", source["path"])
    place = np.arange(len(texts), dtype=np.float64)
    numbers = [_NUMBER.search(text) for text in texts]
    known = [at for at, found in enumerate(numbers) if found]
    signs = {}
    if len(known) >= _MOST_NUMBERED * len(texts):
        values = np.array([int(numbers[at][0]) for at in known])  # type: ignore[index]
        signs["numbered"] = (place[known], average_ranks(values))
    signs["sorted by their texts"] = (place, average_ranks(np.array(texts)))
    signs["sorted by length"] = (place, average_ranks(np.array([len(text) for text in texts])))
    for what, (first, second) in signs.items():
        if np.ptp(second) == 0:
            continue
        rho = float(np.corrcoef(first, second)[0, 1])
        if abs(rho) * math.sqrt(len(first) - 1) > _ORDERED or abs(rho) > 1 - _HAIR:
            return f"the items are {what} (rank correlation with their places {rho:.2f})", source
    return "", source
