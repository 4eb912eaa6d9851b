"""Read recipes: what an index holds of a corpus, from TOML or by name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from contam.errors import ConfigError, Place, Plain, Statement, UsageError
from contam.index.model import LEAST_KEY_BITS, MOST_KEY_BITS, PlainError, Recipe, from_plain

LONGEST_GRAM: Final = 64
LONGEST_STRIDE: Final = 256
MOST_POSTINGS: Final = 1 << 31
UNITS: Final = ("word", "char", "tokenizer")

_SHIPPED: Final = Path(__file__).with_name("recipes")
_CHECKOUT: Final = Path(__file__).parents[2] / "indexes" / "recipes"
_KEYS: Final = ("unit", "gram", "stride", "cap", "key_bits", "tokenizer", "minhash")


def list_recipes() -> tuple[str, ...]:
    """Names of the recipes that ship."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load_recipe(name_or_path: str | Path, *, tokenizer: str | Path | None = None) -> Recipe:
    """Read a recipe: one that ships by its name, any other by the path of its TOML file.

    tokenizer  tokenizer.json for a recipe of unit "tokenizer", instead of the one it names
    Raises UsageError when there is no such recipe or no tokenizer, ConfigError when it is wrong.
    """
    path = _find(name_or_path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            "recipe {} cannot be read: {}", path, Plain(error),
            hint=Statement("known: {}", ", ".join(list_recipes())),
        ) from error  # fmt: skip
    given = found.pop("tokenizer", None)
    if given is not None and not isinstance(given, str):
        raise _refused(path.stem, "tokenizer must be the path of a tokenizer.json")
    if tokenizer is None and given is not None:
        # A recipe beside its tokenizer can be moved with it.
        tokenizer = path.parent / given
    if unknown := [key for key in found if key not in _KEYS]:
        raise ConfigError(
            "recipe {!r}: unknown key {!r}", path.stem, unknown[0],
            hint=Statement("the keys of a recipe: {}", ", ".join(_KEYS)),
        )  # fmt: skip
    pinned = _pin(path.stem, found.get("unit"), tokenizer)
    plain = {
        "name": path.stem,
        "normaliser": current_normaliser(found.get("unit")),
        "tokenizer": pinned,
        "minhash": False,
        "key_bits": 0,
        **found,
    }
    return from_dict(plain)


def from_dict(plain: object) -> Recipe:
    """The recipe of such values. Raises ConfigError when one is missing, unknown or wrong."""
    try:
        recipe = from_plain(Recipe, plain, "recipe")
    except PlainError as error:
        raise ConfigError("{}", Plain(error), hint="compare with the recipes that ship") from error
    check_recipe(recipe)
    return recipe


def check_recipe(recipe: Recipe) -> None:
    """Raise ConfigError when the recipe's values are out of range or contradict each other."""
    limits = {
        "gram": (1, recipe.gram, LONGEST_GRAM),
        "stride": (1, recipe.stride, LONGEST_STRIDE),
        "cap": (1, recipe.cap, MOST_POSTINGS),
        "key_bits": (LEAST_KEY_BITS, recipe.key_bits or LEAST_KEY_BITS, MOST_KEY_BITS),
    }
    for key, (least, value, most) in limits.items():
        if not least <= value <= most:
            raise _refused(recipe.name, f"{key} is {value}, not between {least} and {most}")
    if recipe.unit not in UNITS:
        raise _refused(recipe.name, f"unit is {recipe.unit!r}, not one of {', '.join(UNITS)}")
    if (recipe.unit == "tokenizer") != (recipe.tokenizer is not None):
        raise _refused(recipe.name, 'a tokenizer goes with unit "tokenizer", and with no other')
    if recipe.tokenizer is not None and not {"path", "sha256"} <= set(recipe.tokenizer):
        raise _refused(recipe.name, "of the tokenizer, the path or the digest is missing")
    if recipe.minhash and recipe.unit != "word":
        raise _refused(recipe.name, 'minhash goes with unit "word", and with no other')


def _pin(name: str, unit: object, tokenizer: str | Path | None) -> dict[str, str] | None:
    """The tokenizer file as the recipe remembers it: by its digest."""
    if unit != "tokenizer":
        if tokenizer is not None:
            raise UsageError(
                "recipe {!r} has no use for a tokenizer",
                name,
                hint='only unit = "tokenizer" has, as in the recipe bpe',
            )
        return None
    if tokenizer is None:
        raise UsageError(
            "recipe {!r} needs a tokenizer file", name, hint="name its tokenizer.json: --unit"
        )
    from contam.text.bpe import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    return {"path": str(Path(tokenizer).absolute()), **loaded.fingerprint}


def current_normaliser(unit: object) -> str:
    """The version by which this contam makes the tokens of a recipe's unit."""
    from contam.text.bpe import UNIT_VERSION
    from contam.text.text_tables import NORMALISER

    # Letters are the words' letters: one table decides both.
    return UNIT_VERSION if unit == "tokenizer" else NORMALISER


def _find(name_or_path: str | Path) -> Path:
    name = str(name_or_path)
    if name in list_recipes():
        return _folder() / f"{name}.toml"
    path = Path(name_or_path)
    if path.suffix == ".toml" and path.is_file():
        return path
    raise UsageError(
        "there is no recipe {!r}",
        Place(name),
        hint=Statement("known: {}; or give the path of a TOML file", ", ".join(list_recipes())),
    )


def _folder() -> Path:
    """The folder of the recipes: in the package, or in `indexes/` of a checkout."""
    return _SHIPPED if _SHIPPED.is_dir() else _CHECKOUT


def _refused(name: str, fact: str) -> ConfigError:
    return ConfigError(
        "recipe {!r}: {}", name, fact, hint="compare with the recipes that ship, and start from one"
    )
