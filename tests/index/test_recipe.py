"""Recipes: those that ship are what they say, and a wrong one is refused with the reason."""

from __future__ import annotations

import pytest

from contam.errors import ConfigError, UsageError
from contam.index.recipe import from_dict, list_recipes, load_recipe, to_dict
from contam.text.text_tables import NORMALISER

GUARANTEES = {"standard": ("word", 8), "compact": ("word", 13), "chars": ("char", 50)}
BASE = 'unit = "word"\ngram = 5\nstride = 4\ncap = 100\n'
SKETCH = (
    '[minhash]\nn_perm = 128\nscheme = "affine32"\nshingle = 3\nwindow = 64\nstep = 32\n'
    "bands = 128\nrows = 1\nthreshold = 0.4\n"
)


def test_the_recipes_that_ship_keep_their_guarantees():
    assert list_recipes() == ("bpe", "chars", "compact", "standard")
    for name, (unit, tokens) in GUARANTEES.items():
        recipe = load_recipe(name)
        assert (recipe.name, recipe.unit, recipe.guarantee) == (name, unit, tokens)
        assert recipe.normaliser == NORMALISER
        assert (recipe.minhash is not None) == (name == "standard")
        assert from_dict(to_dict(recipe)) == recipe


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))  # noqa: S106 - no secret
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_a_tokenizer_is_pinned_by_its_digest(tokenizer_file):
    with pytest.raises(UsageError, match="needs a tokenizer"):
        load_recipe("bpe")
    recipe = load_recipe("bpe", tokenizer=tokenizer_file)
    assert (recipe.unit, recipe.guarantee, recipe.normaliser) == ("tokenizer", 8, "bpe-1")
    assert recipe.tokenizer["path"] == str(tokenizer_file)
    assert len(recipe.tokenizer["sha256"]) == 64
    with pytest.raises(UsageError, match="no use for a tokenizer"):
        load_recipe("standard", tokenizer=tokenizer_file)


def test_a_recipe_names_a_tokenizer_beside_it(tokenizer_file):
    path = tokenizer_file.with_name("mine.toml")
    path.write_text('tokenizer = "tokenizer.json"\n' + BASE.replace("word", "tokenizer"))
    recipe = load_recipe(path)
    assert (recipe.name, recipe.tokenizer["path"]) == ("mine", str(tokenizer_file))


def test_a_recipe_of_ones_own_is_read_from_its_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(BASE + SKETCH.replace("0.4", "1"))
    recipe = load_recipe(str(path))
    assert (recipe.name, recipe.guarantee, recipe.cap) == ("mine", 8, 100)
    assert recipe.minhash.threshold == 1.0


WRONG = {
    "gram = 5": ("gram = 0", "gram is 0"),
    "stride = 4": ("stride = 1000", "stride is 1000"),
    "cap = 100": ("cap = 1.5", "cap is 1.5"),
    '"word"': ('"sentence"', "unit is 'sentence'"),
    "gram": ("grams", "unknown key 'grams'"),
    "n_perm = 128": ("n_perm = 127", "more than n_perm"),
    "affine32": ("murmur", "scheme"),
    "window": ("windows", "lacks 'window'"),
    "step = 32": ("step = -1", "step is -1"),
    "window = 64": ("window = 65", "not a multiple"),
    "rows = 1": ("rows = 2", "more than n_perm"),
    "bands = 128\nrows = 1": ("bands = 4\nrows = 2", "rows is not 1"),
    "threshold = 0.4": ("threshold = 1.4", "threshold is 1.4"),
    'unit = "word"': ('unit = "char"', "made of words"),
    "cap = 100\n": ("", "lacks 'cap'"),
    'unit = "word"\n': ('unit = "word"\nname = "x"\n', "unknown key 'name'"),
    "stride = 4\n": ("stride = 4\ntokenizer = 7\n", "tokenizer must be"),
}


@pytest.mark.parametrize("old", WRONG)
def test_a_wrong_recipe_is_refused_with_the_reason(tmp_path, old):
    new, fact = WRONG[old]
    path = tmp_path / "mine.toml"
    path.write_text((BASE + SKETCH).replace(old, new, 1))
    with pytest.raises(ConfigError, match=fact):
        load_recipe(path)


def test_what_is_no_recipe_is_said(tmp_path):
    with pytest.raises(UsageError, match="no recipe 'nothing'") as error:
        load_recipe("nothing")
    assert "standard" in error.value.hint
    (tmp_path / "broken.toml").write_text("unit = ")
    with pytest.raises(UsageError, match="cannot be read"):
        load_recipe(tmp_path / "broken.toml")
    with pytest.raises(ConfigError, match="no object"):
        from_dict([])
