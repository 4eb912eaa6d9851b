"""Recipes: those that ship are what they say, and a wrong one is refused with the reason."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contam.corpus.dates import span_of
from contam.errors import ConfigError, IndexMismatchError, UsageError
from contam.index.build import build
from contam.index.manifest import MANIFEST
from contam.index.open import Index
from contam.index.recipe import from_dict, list_recipes, load_recipe
from contam.index.shards import describe
from contam.index.verify import verify
from contam.text.text_tables import NORMALISER
from tests.index.tiny import write_index

GUARANTEES = {"complete": ("word", 5), "compact": ("word", 13), "chars": ("char", 50)}
BASE = 'unit = "word"\ngram = 5\nstride = 4\ncap = 100\n'


def test_the_recipes_that_ship_keep_their_guarantees():
    assert list_recipes() == ("bpe", "chars", "compact", "complete")
    for name, (unit, tokens) in GUARANTEES.items():
        recipe = load_recipe(name)
        assert (recipe.name, recipe.unit, recipe.guarantee) == (name, unit, tokens)
        assert recipe.normaliser == NORMALISER
        assert recipe.minhash == (name == "compact")
        assert from_dict(asdict(recipe)) == recipe


WRONG = {
    "gram = 5": ("gram = 0", "gram is 0"),
    "stride = 4": ("stride = 1000", "stride is 1000"),
    "cap = 100": ("cap = 1.5", "cap is 1.5"),
    "cap": ("key_bits = 42\ncap", "key_bits is 42, not between 24 and 41"),
    '"word"': ('"sentence"', "unit is 'sentence'"),
    "gram": ("grams", "unknown key 'grams'"),
    'unit = "word"': ('unit = "char"', 'minhash goes with unit "word"'),
    "cap = 100\n": ("", "lacks 'cap'"),
    'unit = "word"\n': ('unit = "word"\nname = "x"\n', "unknown key 'name'"),
    "stride = 4\n": ("stride = 4\ntokenizer = 7\n", "tokenizer must be"),
}


@pytest.mark.parametrize("old", WRONG)
def test_a_wrong_recipe_is_refused_with_the_reason(tmp_path, old):
    new, fact = WRONG[old]
    path = tmp_path / "mine.toml"
    path.write_text((BASE + "minhash = true\n").replace(old, new, 1))
    with pytest.raises(ConfigError, match=fact):
        load_recipe(path)


def dates_of(folder, dates):
    """What an index says of documents with these dates; None for a document without one."""
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "text": f"the lamp of the {n}th boat burnt all night",
            **({} if d is None else {"date": d}),
        }
        for n, d in enumerate(dates)
    ]
    shard = folder / "a.jsonl"
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build(shard, folder / "ix", overwrite=True)
    facts = describe(Index.open(folder / "ix"))
    return facts["dates"], facts["n_unreadable_dates"]


TEXTS = st.one_of(
    st.datetimes().map(str),
    st.datetimes().map(lambda one: one.isoformat() + "Z"),
    st.dates().map(str),
    st.dates().map(lambda one: one.strftime("%a, %d %b %Y 01:02:03 GMT")),
    st.text("0123456789-T :Z", max_size=12),
    st.none(),
)


@given(dates=st.lists(TEXTS, min_size=1, max_size=12))
@settings(deadline=None, max_examples=15)
def test_each_date_counts_as_the_parser_reads_it(tmp_path_factory, dates):
    spans = [span for date in dates if (span := span_of(date))]
    n_unreadable = sum(1 for date in dates if (date or "").strip() and not span_of(date))
    ends = [str(min(a for a, _ in spans)), str(max(b for _, b in spans))] if spans else None
    assert dates_of(tmp_path_factory.mktemp("dates") / "c", dates) == (ends, n_unreadable)


@pytest.fixture
def folder(tmp_path):
    """A sound index whose shards are gone."""
    write_index(tmp_path)
    return tmp_path


def test_a_sound_index_whose_shards_are_gone_is_not_damaged(folder):
    report = verify(folder)
    assert not report.damaged
    assert not report.ok
    assert {finding.place for finding in report.findings} == {
        "/corpus/part-0.parquet",
        "/corpus/part-1.parquet",
    }
    assert (report.n_segments, report.n_shards) == (2, 2)
    assert report.n_files == 38
    assert report.n_bytes == sum(
        path.stat().st_size for path in folder.rglob("*") if path.suffix in {".npy", ".parquet"}
    )
    assert report.to_dict()["ok"] is False


def test_a_manifest_that_cannot_be_read_is_a_finding_and_no_index_an_error(folder, tmp_path):
    (folder / MANIFEST).write_text("{}")
    report = verify(folder)
    assert (report.index_id, report.damaged, report.n_files) == (None, True, 0)
    (folder / MANIFEST).write_text('{"format":99}')
    with pytest.raises(IndexMismatchError):
        verify(folder)
    with pytest.raises(UsageError):
        verify(tmp_path / "nowhere")


def test_what_no_manifest_speaks_of_is_a_leftover(folder):
    (folder / "segments" / "0123456789").mkdir()
    (folder / "segments" / "0123456789" / "starts.npy").write_bytes(b"")
    (folder / "retired-00000000.npy").write_bytes(b"")
    report = verify(folder)
    assert not report.damaged
    assert report.leftovers == ["retired-00000000.npy", "segments/0123456789/starts.npy"]
