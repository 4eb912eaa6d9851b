"""Read log-probabilities, one record a shard or text, every number checked."""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.dates import span_of
from contam.errors import LogError, Public, Remedy, UsageError
from contam.study.inputs import Rows, refuse_doubles

if TYPE_CHECKING:
    from contam.detect.given import Source
    from contam.study.model import Floats

_HAIR: Final = 1e-6
#: Tokens that a shuffled shard may have more or fewer: texts join differently at their ends.
_TOKENS_APART: Final = 0.02
_CANONICAL, _SHUFFLED = "canonical", "shuffled"
_TWO: Final = 2
#: Standard errors of a rank correlation from which an order is none by chance.
_ORDERED: Final = 4.0
_MOST_NUMBERED: Final = 0.9
_MEMBER: Final = {"none": "", "true": "yes", "1": "yes", "false": "no", "0": "no"}
_NUMBER: Final = re.compile(r"\d{1,15}")
_ABOVE: Final = "{} in {}, and no log-probability is above 0"


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Of one model: float64[shards] in the published order, float64[shards, orders] shuffled."""

    names: tuple[str, ...]
    canonical: Floats
    shuffled: Floats
    n_tokens: tuple[int, ...]


def _rows(given: Source, called: str, *roles: str) -> tuple[Rows, list[str], dict[str, Any]]:
    """The records, the model of each ("" where none is named), and what run.json says of them."""
    rows = Rows(given, called, usual={role: (role,) for role in (*roles, "model")})
    models = rows.texts("model", empty=True) if rows.has("model") else [""] * len(rows)
    return rows, models, {"set": called, **rows.source}


def read_shards(given: Source) -> tuple[dict[str, Shards], dict[str, Any]]:
    """Model -> its `Shards`, and what run.json says of the file.

    Records {shard, kind, perm, logprob, n_tokens[, model]}.
    """
    rows, models, source = _rows(given, "shards", "shard", "kind", "perm", "logprob", "n_tokens")
    kinds, perms = rows.texts("kind"), rows.texts("perm", empty=True)
    for row, kind in enumerate(kinds):
        if kind not in {_CANONICAL, _SHUFFLED}:
            raise Record(rows, row).error("kind is {!r}, neither canonical nor shuffled", kind)
        if kind == _SHUFFLED and not perms[row]:
            raise Record(rows, row).error("there is no perm, the name of the order")
    orders = [(kind, perm * (kind == _SHUFFLED)) for kind, perm in zip(kinds, perms, strict=True)]
    shards = list(zip(models, rows.texts("shard"), strict=True))
    keys = list(zip(shards, orders, strict=True))
    logprob, n_tokens = rows.numbers("logprob"), rows.numbers("n_tokens")
    wrong = Remedy.REPAIR_ROW_OR_LEAVE_OUT
    rows.refuse(logprob > _HAIR, f"{{}}: {_ABOVE}", logprob, Public("logprob"), remedy=wrong)
    whole = (n_tokens >= 1) & (n_tokens == n_tokens.round())
    rows.refuse(~whole, "{}: {} is no number of tokens", n_tokens, remedy=wrong)
    tokens_of: dict[tuple[str, str], float] = {}
    first = np.array([tokens_of.setdefault(*one) for one in zip(shards, n_tokens, strict=True)])
    apart = np.abs(n_tokens - first) > np.maximum(1, _TOKENS_APART * first)
    rows.refuse(
        apart, "{}: {} tokens, and others in another order of the shard", n_tokens, remedy=wrong
    )
    refuse_doubles(rows, keys, "order of a shard")
    known = dict(zip(keys, np.minimum(logprob, 0.0).tolist(), strict=True))
    found = {}
    for model in sorted(set(models)):
        own = [shard for shard in tokens_of if shard[0] == model]
        orders = sorted({order for (of, _), order in known if of == model} | {(_CANONICAL, "")})
        if len(own) < _TWO:
            raise LogError("{}: the test needs two shards, and there is {}", rows.path, len(own))
        if len(orders) < _TWO:
            raise LogError("{}: there is no shuffled order to compare with", rows.path)
        table = np.array([[known.get((shard, one), math.nan) for one in orders] for shard in own])
        for at, shard in enumerate(own):
            if np.isnan(table[at]).any():
                raise LogError(
                    "{}: shard {!r} lacks an order that another shard has", rows.path, shard[1],
                    remedy=Remedy.IS_FILE_WHOLE,
                )  # fmt: skip
        names = tuple(name for _, name in own)
        n = tuple(int(tokens_of[shard]) for shard in own)
        found[model] = Shards(names, table[:, 0], table[:, 1:], n)
    return found, source


def read_texts(given: Source) -> tuple[dict[str, dict[str, Record]], dict[str, Any]]:
    """Model -> item -> its record, and what run.json says of the file.

    Records {item, logprob: [...]}, and further tokens, mu, sigma, ref_logprob, lower_logprob, text,
    member, date, model.
    """
    more = ("tokens", "mu", "sigma", "ref_logprob", "lower_logprob", "text", "member", "date")
    rows, models, source = _rows(given, "texts", "item", "logprob", *more)
    items = rows.texts("item")
    refuse_doubles(rows, list(zip(models, items, strict=True)), "item")
    found: dict[str, dict[str, Record]] = {model: {} for model in sorted(set(models))}
    for row, (model, item) in enumerate(zip(models, items, strict=True)):
        found[model][item] = Record(rows, row)
    return found, source


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a table whose cells may be lists; nan is what it does not hold.

    Every method raises LogError for a cell that is something else.
    """

    rows: Rows
    row: int

    def get(self, role: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The cell as it is, None for none."""
        return self.rows.cell(role, self.row)

    def error(self, said: str, *facts: object) -> LogError:
        """The error that says what is wrong with the row."""
        place = self.rows.at(self.row)
        return LogError(f"{{}}: {said}", place, *facts, remedy=Remedy.REPAIR_ROW_OR_LEAVE_OUT)

    def numbers(self, role: str, n: object = None) -> Floats:
        """A list of numbers, as many as n where that is given."""
        cell, name = self.get(role), Public(role)
        if not isinstance(cell, list) or not cell:
            raise self.error("{} is no list of numbers", name)
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in cell):
            raise self.error("{} holds what is no number", name)
        if n is not None and len(cell) != n:
            raise self.error("{} has {} numbers for {} tokens", name, len(cell), n)
        found = np.array(cell, np.float64)
        if not np.isfinite(found).all():
            raise self.error("{} is not finite", name)
        return found

    def logprobs(self, role: str, n: object = None) -> Floats:
        """A list of log-probabilities; what rounding leaves above 0 is 0."""
        found = self.numbers(role, n)
        if found.max() > _HAIR:
            raise self.error(_ABOVE, float(found.max()), Public(role))
        return np.minimum(found, 0.0)

    def tokens(self) -> Floats:
        """The log-probability of every token, as many as `tokens` says where it is there."""
        tokens = self.get("tokens")
        return self.logprobs("logprob", len(tokens) if isinstance(tokens, list) else tokens)

    def vocabulary(self, n: int) -> tuple[Floats, Floats]:
        """Mean and s.d. of the log-probability over the vocabulary at each of n tokens."""
        both = [self.get(role) is not None for role in ("mu", "sigma")]
        if not any(both):
            return np.full(n, np.nan), np.full(n, np.nan)
        if not all(both):
            raise self.error("mu and sigma come together")
        mu, sigma = self.logprobs("mu", n), self.numbers("sigma", n)
        if sigma.min() <= 0:
            raise self.error("a sigma is not above 0")
        return mu, sigma

    def mean(self, role: str) -> float:
        """The mean of a list of log-probabilities, or one number that is their mean."""
        cell = self.get(role)
        if cell is None:
            return math.nan
        if isinstance(cell, list):
            return float(self.logprobs(role).mean())
        if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
            raise self.error("{} is {!r}, which is no number", Public(role), str(cell)[:40])
        if cell > _HAIR:
            raise self.error(_ABOVE, cell, Public(role))
        return min(float(cell), 0.0)

    def member(self) -> str:
        """Whether it was trained on: "yes" or "no", "" where nobody says."""
        known = str(self.get("member")).lower().removesuffix(".0")
        if known not in _MEMBER:
            raise self.error("member is {!r}, neither true nor false", known[:40])
        return _MEMBER[known]

    def day(self) -> float:
        """The first day that the date may mean, as a proleptic ordinal."""
        date = self.get("date")
        if date is None:
            return math.nan
        if (when := span_of(str(date))) is None:
            raise self.error("{!r} is no date such as 2024-01-31", str(date)[:40])
        return when[0].toordinal()

    def n_bytes(self) -> float:
        """Of the text compressed by zlib."""
        words = self.get("text")
        if words is not None and not isinstance(words, str):
            raise self.error("text is no text")
        return len(zlib.compress(words.encode())) if words else math.nan


def ordered(given: Source) -> tuple[str, dict[str, Any]]:
    """Why the items of a file could not as well stand in another order, "" where nothing says so.

    given  records {text} in the published order
    """
    from scipy.stats import spearmanr

    rows, _, source = _rows(given, "items", "text")
    texts = rows.texts("text")
    if len(set(texts)) < len(texts):
        return f"{len(texts) - len(set(texts))} items are there twice", source
    if len(texts) < _TWO:
        raise UsageError("{}: one item has no order", rows.path)
    numbers = {at: int(one[0]) for at, text in enumerate(texts) if (one := _NUMBER.search(text))}
    by_text = {text: at for at, text in enumerate(sorted(texts))}
    signs = {
        "numbered": numbers if len(numbers) >= _MOST_NUMBERED * len(texts) else {},
        "sorted by their texts": {at: by_text[text] for at, text in enumerate(texts)},
        "sorted by length": {at: len(text) for at, text in enumerate(texts)},
    }
    for what, values in signs.items():
        if len(set(values.values())) < _TWO:
            continue
        rho = float(spearmanr(list(values), list(values.values())).statistic)
        if abs(rho) * math.sqrt(len(values) - 1) > _ORDERED or abs(rho) > 1 - _HAIR:
            return f"the items are {what} (rank correlation with their places {rho:.2f})", source
    return "", source
