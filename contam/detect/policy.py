"""What a policy does, and how one is found: by id, by id and preset, or from a file.

A file starts from a known policy and states only what differs, so every policy that ever ran can be
written down, read back and told from any other by its fingerprint.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast, runtime_checkable

from contam.detect.policy_spec import PolicySpec, as_table
from contam.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.model import (
        Bools,
        Float32s,
        Float64s,
        ItemsRead,
        Judgements,
        LaneItems,
        Pairs,
        Totals,
    )
    from contam.text.bpe import FileTokenizer

__all__ = [
    "Policy",
    "PolicySpec",
    "ReadingPolicy",
    "TextReader",
    "get_policy",
    "list_policies",
    "policy_from_dict",
]


class Policy(Protocol):
    """A definition at work. Arrays in, arrays out; equal evidence always gives equal answers."""

    @property
    def spec(self) -> PolicySpec:
        """What this policy declares."""

    def score_pairs(self, pairs: Pairs, items: LaneItems) -> Float64s:
        """How much each document tells of its item, float64[m]; the best has the highest."""

    def hits(self, pairs: Pairs, items: LaneItems, score: Float64s | None = None) -> Bools:
        """Which documents count in `Totals.n_documents`, bool[m] (the spec's count rule).

        score  what `score_pairs` gave for them, where that is known already
        """

    def judge(self, items: LaneItems, totals: Totals) -> Judgements:
        """Label and score of every item."""

    def reason(self, items: LaneItems, totals: Totals, judgement: Judgements, i: int) -> str:
        """One plain sentence with the figures behind the label of item i."""


class TextReader(Protocol):
    """Reads documents for one policy whose rules need more than shared words."""

    @property
    def known(self) -> ItemsRead:
        """What it knows of the items."""

    def read(self, text: str, items: Sequence[int]) -> Float32s:
        """What the document holds of each of these items: a score and three figures of [n, 4]."""


@runtime_checkable
class ReadingPolicy(Policy, Protocol):
    """A policy that judges by what its own reader found: `Pairs.read`, `LaneItems.read`."""

    def reader(self, items: Sequence[BenchItem], tokenizer: FileTokenizer | None) -> TextReader:
        """What reads documents for it; tokenizer  the file whose tokens are asked for, if any."""


class _PolicyModule(Protocol):
    """What each module named below offers."""

    SPECS: tuple[PolicySpec, ...]
    PRESETS: Mapping[str, Mapping[str, object]]

    def build(self, spec: PolicySpec) -> Policy: ...


# Modules are imported when asked for: a run pays only for the policies it uses.
_MODULES: Final[Mapping[str, str]] = {
    "contam": "contam_default",
    "gpt3-test": "any_run",
    "lmeval-13": "any_run",
    "openr1-8": "any_run",
    "llama3-8gram": "shares",
    "palm-70": "shares",
    "igmini-50": "shares",
    "gpt4-50char": "substrings",
    "tulu3-50": "best_document",
    "decon-default": "decon",
}
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


def list_policies() -> tuple[PolicySpec, ...]:
    """The specs of every policy that ships, our own first."""
    return tuple(_known_spec(name) for name in _MODULES)


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
    changes.setdefault("id", default_id or start.id)
    spec = start.with_changes(changes)
    if spec.fingerprint() != start.fingerprint() and "description" not in changes:
        spec = replace(spec, description=f"Changed from {start.id}. {spec.description}")
    if spec.id.partition(":")[0] in _MODULES:
        known = _known_spec(spec.id)
        if known.fingerprint() != spec.fingerprint():
            raise PolicyError(
                f"{spec.id!r} is the name of a published policy, and this one judges differently",
                hint="give it an id of its own",
            )
    return _build(spec)


def _module_of(base: str) -> _PolicyModule:
    module = import_module(f"contam.detect.policies.{_MODULES[base]}")
    return cast("_PolicyModule", module)


def _known_spec(name: str) -> PolicySpec:
    base, _, preset = name.partition(":")
    if base not in _MODULES:
        raise PolicyError(f"there is no policy {base!r}", hint=f"known: {', '.join(_MODULES)}")
    module = _module_of(base)
    spec = next(spec for spec in module.SPECS if spec.id == base)
    if not preset:
        return spec
    if preset not in spec.presets:
        known = ", ".join(spec.presets) or "none"
        raise PolicyError(f"policy {base!r} has no preset {preset!r}", hint=f"it has: {known}")
    return spec.with_changes({**module.PRESETS[preset], "id": name})


def _build(spec: PolicySpec) -> Policy:
    return _module_of(spec.base).build(spec)


def _read_file(path: Path) -> Mapping[str, object]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"cannot read policy file {path}: {error.strerror}") from error
    try:
        tree = json.loads(raw) if path.suffix.lower() == ".json" else tomllib.loads(raw.decode())
    except ValueError as error:
        hint = "write it as TOML or JSON"
        raise PolicyError(f"policy file {path}: {error}", hint=hint) from error
    return as_table("the content", tree)
