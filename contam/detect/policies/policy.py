"""Define the interface of policies, and find one by id, by id and preset, or from a file.

A file starts from a known policy and states only what differs, so every policy that ever ran can be
written down, read back, and recognised by its fingerprint.
"""

from __future__ import annotations

import json
import pkgutil
import tomllib
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard

from contam.detect import policies
from contam.detect.policies.policy_spec import PolicySpec, PolicyTraits, as_table
from contam.errors import InternalError, Plain, PolicyError, Public, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from contam.benchmark.items import BenchItem
    from contam.detect.meaning.rare_words import RareWords
    from contam.detect.model import (
        Bools,
        Float32s,
        Float64s,
        Int64s,
        ItemsRead,
        Judgements,
        Matches,
        Totals,
        ViewItems,
    )
    from contam.text.bpe import FileTokenizer

#: Judges where none is asked for, and ranks the documents that are kept as evidence.
DEFAULT: Final = "contam"


class Policy(Protocol):
    """A definition at work. Arrays in, arrays out; equal evidence always gives equal answers."""

    @property
    def spec(self) -> PolicySpec:
        """What this policy declares."""

    @property
    def traits(self) -> PolicyTraits:
        """What searching and indexing must know of it."""

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """How much each document tells of its item, float64[m]; the best has the highest."""

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Which documents count in `Totals.n_documents`, bool[m] (the spec's count rule).

        score  what `score_matches` gave for them
        """

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Label and score of every item."""

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """For each of these items, by number, a sentence with the figures behind its label."""


class TextReader(Protocol):
    """Reads documents for one policy whose rules need more than shared words."""

    @property
    def known(self) -> ItemsRead:
        """What it knows of the items."""

    def read(self, texts: Sequence[bytes], items: Int64s, start: Int64s) -> Float32s:
        """What documents hold of items: a score and three figures of [n, 4].

        items  int64[n], those to look for: in texts[i] from start[i] to start[i + 1]
        """


class ReadingPolicy(Policy, Protocol):
    """A policy that judges by what its own reader found: `Matches.read`, `ViewItems.read`."""

    def reader(self, items: Sequence[BenchItem], tokenizer: FileTokenizer | None) -> TextReader:
        """What reads documents for it; tokenizer  the file whose tokens are asked for, if any."""


def reads_text(policy: Policy) -> TypeGuard[ReadingPolicy]:
    """Whether a policy reads documents for itself."""
    return policy.traits.reads_text


class RephrasingPolicy(Policy, Protocol):
    """A policy that judges by rephrased questions: `TokenView.rephrasings`."""

    def rare_words(self, items: Sequence[BenchItem]) -> RareWords:
        """What a search needs of the items. Raises ContamError without its model."""

    def known(self, rare: RareWords) -> ItemsRead:
        """What judging and reasons need of them."""


def sees_rephrasings(policy: Policy) -> TypeGuard[RephrasingPolicy]:
    """Whether a policy looks for rephrased questions."""
    return policy.traits.rephrasings


def shortest_run(policy: Policy) -> int:
    """Tokens of the shortest run that can decide a verdict of this policy."""
    spec, least = policy.spec, policy.traits.least_run
    return min(spec.n, int(spec.number(least))) if least else spec.n


_FILE_SUFFIXES: Final = (".toml", ".json")


def get_policy(name_or_path: str | Path) -> Policy:
    """The policy of that id, id and preset (`decon-default:olmo-web`), or TOML or JSON file.

    A file names its `base` (an id, or id:preset) and what differs: n, parts, thresholds,
    comparison, parameters, id, title, description. Raises PolicyError for anything else.
    """
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or name.lower().endswith(_FILE_SUFFIXES):
        path = Path(name_or_path)
        return policy_from_dict(_read_file(path), default_id=path.stem)
    return _build(_known_spec(name))


def list_policies(*, optional: bool = False) -> tuple[PolicySpec, ...]:
    """The specs of every policy that ships, our own first.

    optional  whether those are among them that need more than is always installed
    """
    return tuple(
        spec for module, spec in _every() if optional or not getattr(module, "OPTIONAL", False)
    )


def _every() -> Iterator[tuple[ModuleType, PolicySpec]]:
    """Every policy with the module that builds it, each imported when it is its turn."""
    found = sorted(each.name for each in pkgutil.iter_modules(policies.__path__))
    for name in dict.fromkeys((*policies.LISTED_FIRST, *found)):
        module = import_module(f"{policies.__name__}.{name}")
        yield from ((module, spec) for spec in getattr(module, "SPECS", ()))
    yield from _published()


@cache
def _published() -> tuple[tuple[ModuleType, PolicySpec], ...]:
    """Definitions of others that change parameters of a policy here: `published.toml`."""
    text = files(policies).joinpath("published.toml").read_text("utf-8")
    found = []
    for name, tree in tomllib.loads(text).items():
        source = tree.pop("source")
        module, base = _find(tree.pop("base"))
        spec = base.with_changes({**tree, "id": name})
        found.append((module, replace(spec, source=source, approximate=True)))
    return tuple(found)


def policy_from_dict(tree: Mapping[str, object], *, default_id: str = "") -> Policy:
    """The policy that a file, or `PolicySpec.to_dict` in a run's record, describes."""
    base = tree.get("base")
    if not isinstance(base, str):
        raise PolicyError(
            "a policy file must name the policy it starts from",
            hint='for example: base = "llama3-8gram"',
        )
    start = _known_spec(base)
    changes = {name: value for name, value in tree.items() if name != "base"}
    if check := getattr(_find(base.partition(":")[0])[0], "check_changes", None):
        check(start, changes)
    changes.setdefault("id", default_id or start.id)
    spec = start.with_changes(changes)
    if changed := start.differences(spec):
        # What is published says its own figures in words, which hold no more.
        title, told = f"{start.id} with {changed}", f"Changed from {start.id}: {changed}."
        told = f"{told} As published: {spec.description}"
        spec = replace(
            spec,
            title=spec.title if "title" in changes else title,
            description=spec.description if "description" in changes else told,
        )
    is_known = spec.id.partition(":")[0] in _known_ids()
    if is_known and _known_spec(spec.id).fingerprint() != spec.fingerprint():
        raise PolicyError(
            "{!r} is the name of a published policy, and this one judges differently",
            spec.id,
            hint="give it an id of its own",
        )
    return _build(spec)


def _known_ids() -> list[str]:
    return [spec.id for spec in list_policies(optional=True)]


def _find(name: str) -> tuple[ModuleType, PolicySpec]:
    """The policy of that id, and the module that builds it. Raises PolicyError."""
    for module, spec in _every():
        if spec.id == name:
            return module, spec
    known = _known_ids()
    close = get_close_matches(name, known, n=2)
    near = Public(f"did you mean {' or '.join(close)}? " if close else "")
    raise PolicyError(
        "there is no policy {!r}", name, hint=Statement("{}known: {}", near, ", ".join(known))
    )


def _known_spec(name: str) -> PolicySpec:
    base, _, preset = name.partition(":")
    module, spec = _find(base)
    if not preset:
        return spec
    if preset not in spec.presets:
        known = ", ".join(spec.presets) or "none"
        raise PolicyError(
            "policy {!r} has no preset {!r}",
            base,
            preset,
            hint=Statement("it has: {}", known),
        )
    changes = module.PRESETS[preset]
    return spec.with_changes({**changes, "id": name})


def _build(spec: PolicySpec) -> Policy:
    policy: Policy = _find(spec.base)[0].build(spec)
    if policy.traits.reads_text != hasattr(policy, "reader"):
        raise InternalError(
            f"policy {spec.id!r} must have a reader if it reads text, and only then"
        )
    return policy


def _read_file(path: Path) -> Mapping[str, object]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise PolicyError(
            "cannot read policy file {}: {}",
            path,
            Public(error.strerror),
            hint="check the path and its rights",
        ) from error
    try:
        tree = json.loads(raw) if path.suffix.lower() == ".json" else tomllib.loads(raw.decode())
    except ValueError as error:
        raise PolicyError(
            "policy file {}: {}", path, Plain(error), hint="write it as TOML or JSON"
        ) from error
    return as_table("the content", tree)
