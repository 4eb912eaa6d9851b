"""A rephrased question is found, explained and never called more than suspect."""

import shutil
import sys

import pytest

import contam
from contam.cleaning.clean import clean
from contam.detect.meaning import vectors
from contam.detect.policies.policy import get_policy, list_policies
from contam.errors import ConfigError, IndexMismatchError, MissingExtraError, PolicyError
from contam.index.build import build
from tests.detect.meaning.small_model import install
from tests.detect.parts.test_parts import compute, in_one, in_parts
from tests.property.worlds import write_items, write_shard

ITEMS = [
    {
        "id": "pears",
        "question": "The merchant buys 14 pears in the orchard and 23 lantern for the basket"
        " of the neighbour: how many has the merchant at the harbour?",
    },
    {
        "id": "violin",
        "question": "Velvet curtain, marble violin, copper kettle and 5 thimble: how many parcel?",
    },
    {
        "id": "sibling",
        "question": "Copper anchor, cinnamon barrel and 81 saddle: how many feather?",
    },
    {"id": "code", "question": "def glacier(meadow, canyon): turbine saddle 77 barrel copper"},
    {"id": "short", "question": "How many pears has the merchant?"},
    {"id": "in place", "question": "How many lantern has the merchant in a basket?"},
]
REPHRASED = (
    "At the harbour the neighbour has a hamper. How many fruit has a merchant there, with 23"
    " lantern to the basket: 14 pears in the plantation of the orchard the merchant purchases"
)
TEXTS = {
    "rephrased": f"glacier and meadow. {REPHRASED}. canyon and turbine",
    "renumbered": REPHRASED.replace("14", "91").replace("23", "67"),
    "scattered": " feather ".join(REPHRASED.split()) + " thimble" * 60,
    "sibling": "Copper anchor, cinnamon barrel and 82 saddle: how many feather?",
    "code": "copper barrel 12 saddle with turbine canyon meadow glacier",
    "in place": "meadow. How many lantern has the merchant in a hamper? glacier",
    "other": "nothing of it stands in this text, whatever is looked for",
}


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The small model, the items and a corpus of two shards; the policy file's path is `small`."""
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    shutil.copy(tmp_path / "site/small.toml", tmp_path / "small.toml")
    write_items(tmp_path / "bench.jsonl", ITEMS)
    texts = list(TEXTS.values())
    write_shard(tmp_path / "corpus/part-0.parquet", texts[:3])
    write_shard(tmp_path / "corpus/part-1.parquet", texts[3:])
    return tmp_path


def scan(world, policies=("small.toml",), **more):
    named = [str(world / name) if name.endswith(".toml") else name for name in policies]
    return contam.scan(world / "corpus", world / "bench.jsonl", policies=named, **more)


def test_a_rephrased_question_is_suspect_and_another_one_is_not(world):
    found = {one.item_id: one for one in scan(world)}
    assert {name: one.label for name, one in found.items()} == {
        "pears": "suspect", "violin": "clean", "sibling": "clean", "code": "suspect",
        "short": "not_checkable", "in place": "suspect",
    }  # fmt: skip
    pears = found["pears"]
    assert (pears.kind, pears.exposure, pears.n_documents) == ("rephrased", "question", 1)
    assert (pears.best_shard, pears.best_row) == ("part-0.parquet", 0)
    assert 0.7 <= pears.score < 1
    assert "2 of its 2 numbers" in pears.reason


def test_evidence_is_the_words_and_numbers_that_both_texts_have(world):
    rows = [row for row in scan(world).evidence.to_pylist() if row["item_id"] == "pears"]
    question, text = ITEMS[0]["question"], TEXTS["rephrased"]
    words = [question[row["item_start"] : row["item_end"]].lower() for row in rows]
    there = [text[row["document_start"] : row["document_end"]].lower() for row in rows]
    assert words == there
    assert set(words) == {
        *("merchant", "14", "pears", "orchard", "23", "lantern", "basket", "neighbour", "harbour")
    }


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("How many lantern has the merchant in a hamper?", "suspect"),
        ("To each: how many lantern has the merchant in a hamper for how many?", "suspect"),
        ("How many lantern has the merchant in to violin?", "not_checkable"),
        ("In a hamper the merchant has how many lantern?", "not_checkable"),
        (
            "How many lantern, of the orchard and to each, has the merchant in a hamper?",
            "not_checkable",
        ),
        ("How many lantern has the merchant in a basket?", "not_checkable"),
    ],
    ids=["replaced", "within", "another word", "another order", "longer", "the same words"],
)
def test_a_short_question_is_found_where_like_words_stand_in_its_order(world, text, label):
    (found,) = contam.scan([{"text": text}], [dict(ITEMS[5])], policies=[str(world / "small.toml")])
    assert found.label == label
    assert label == "not_checkable" or 0.65 <= found.score < 1


def test_a_short_question_belongs_to_the_item_that_fits_better(world):
    items = [
        dict(ITEMS[5]),
        {"id": "other", "question": ITEMS[5]["question"].replace("basket", "friend")},
    ]
    text = "How many lantern has the merchant in a neighbour?"
    labels = {
        one.item_id: one.label
        for one in contam.scan([{"text": text}], items, policies=[str(world / "small.toml")])
    }
    assert labels == {"in place": "not_checkable", "other": "suspect"}


@pytest.mark.parametrize("item", ITEMS[:4], ids=lambda item: item["id"])
def test_an_item_matches_itself(world, item):
    texts = [f"{item['question']} feather", "before. " * 9 + item["question"].upper()]
    for number, text in enumerate(texts):
        result = contam.scan(
            [{"text": text}], [dict(one) for one in ITEMS], policies=[str(world / "small.toml")]
        )
        labels = {one.item_id: one.label for one in result}
        assert labels[item["id"]] == "suspect", number


@pytest.mark.parametrize(
    "question",
    [
        "How many " * 9 + "velvet saddle, barrel, anchor, kettle at the marble?",
        "Velvet saddle to velvet barrel, anchor to kettle. " * 9,
    ],
    ids=["together at the end", "again and again"],
)
def test_a_question_whose_rare_words_stand_close_together_is_found(world, question):
    write_items(world / "bench.jsonl", [{"id": "close", "question": question}])
    write_shard(world / "corpus/part-1.parquet", [f"{TEXTS['other']} {question} to the harbour"])
    assert [one.label for one in scan(world)] == ["suspect"]


def test_workers_parts_and_one_scan_give_the_same_bytes(world):
    asked = {"policies": (str(world / "small.toml"), "contam"), "max_evidence": 2}
    assert in_parts(world, asked=asked) == in_one(world, **asked)
    again = scan(world, ("small.toml", "contam"), workers=3, max_evidence=2)
    assert again.verdicts == scan(world, ("small.toml", "contam"), workers=1).verdicts


def test_other_policies_are_as_without_it(world):
    alone = scan(world, ["contam"])
    beside = scan(world, ["contam", "small.toml"])
    assert list(alone) == [one for one in beside if one.policy == "contam"]
    rows = alone.evidence.to_pylist()
    assert rows == [row for row in beside.evidence.to_pylist() if row in rows]


def test_without_its_model_nothing_is_judged(world, monkeypatch):
    import contam.extras

    found = contam.extras.find_spec
    monkeypatch.setattr(
        contam.extras, "find_spec", lambda name: None if name == "wordllama" else found(name)
    )
    with pytest.raises(MissingExtraError) as error:
        scan(world)
    assert "[meaning]" in error.value.hint


def test_with_another_model_nothing_is_judged_either(world):
    with pytest.raises(ConfigError, match="another model"):
        scan(world, ["contam-meaning"])
    (world / "site/wordllama/weights/l2_supercat_256.safetensors").unlink()
    with pytest.raises(ConfigError, match="has none of"):
        contam.scan(world / "corpus", world / "bench.jsonl", policies=["contam-meaning"])


def test_an_index_refuses_it_and_names_the_way_out(world):
    build(world / "corpus", world / "index", workers=1)
    with pytest.raises(IndexMismatchError, match="small-meaning") as error:
        contam.query(world / "index", world / "bench.jsonl", policies=str(world / "small.toml"))
    assert "scan" in error.value.hint


def test_no_text_is_taken_out_by_it(world):
    policies = ["contam", str(world / "small.toml")]
    with pytest.raises(PolicyError, match="small-meaning"):
        clean(world / "corpus", world / "bench.jsonl", world / "cleaned", policies=policies)
    assert not (world / "cleaned").exists()


def test_it_is_optional_and_says_suspect_at_most(world):
    assert "contam-meaning" not in [spec.id for spec in list_policies()]
    assert "contam-meaning" in [spec.id for spec in list_policies(optional=True)]
    assert "wordllama" not in sys.modules
    text = (world / "small.toml").read_text(encoding="utf-8")
    (world / "sure.toml").write_text(
        text.replace("{suspect = 0.7}", "{contaminated = 0.9}"), "utf-8"
    )
    with pytest.raises(PolicyError, match="no more than suspect"):
        get_policy(world / "sure.toml")


def test_a_share_without_the_model_fails(world):
    install(world / "site", seed=8)
    vectors._load.cache_clear()
    with pytest.raises(ConfigError, match="another model"):
        compute(world, policies=(str(world / "small.toml"),))
