"""Whatever a corpus holds: an index and a scan tell the same of every guaranteed run."""

from hypothesis import given, settings
from hypothesis import strategies as st

import contam
from contam.corpus.formats.registry import NAMED
from tests.corpus_files import WRITERS
from tests.detect.indexed.indexes import evidence, long_pairs, make
from tests.kernels.support import torn_worlds, worlds
from tests.property.worlds import folder, write_items

#: Every example builds an index.
slow = settings(max_examples=max(20, settings().max_examples // 3), deadline=None)

#: What runs of eight words alone decide.
POLICIES = ("openr1-8", "llama3-8gram", "lmeval-13")


@slow
@given(
    worlds(most=30, documents=6),
    st.sampled_from(((5, 4), (3, 6), (6, 3), (2, 7))),
    st.booleans(),
    st.sampled_from(sorted(WRITERS)),
)
def test_an_index_and_a_scan_agree_on_every_run_of_eight(world, sizes, split, kind):
    items, documents = world
    rows = [
        {
            "id": item.item_id,
            "question": item.question,
            **({"passage": item.passage} if item.passage else {}),
        }
        for item in items
        if item.question.strip()
    ]
    if not rows or not any(document.split() for document in documents):
        return
    gram, stride = sizes
    with folder() as home:
        corpus = home / "corpus"
        corpus.mkdir()
        cuts = [documents[:3], documents[3:]] if split else [documents]
        for number, texts in enumerate(cuts):
            suffix = NAMED[kind].suffixes[0]
            rows_here = [{"text": text} for text in texts]
            (corpus / f"part-{number}{suffix}").write_bytes(WRITERS[kind](rows_here))
        bench = write_items(home / "bench.jsonl", rows)
        scanned = contam.scan(corpus, bench, policies=POLICIES, workers=1)
        index = make(corpus, home / "index", gram=gram, stride=stride)
        asked = contam.query(index, bench, policies=POLICIES, workers=1)
        found, sure = evidence(asked), long_pairs(scanned, 8)
        assert {place: found.get(place) for place in sure} == sure
        for mine, theirs in zip(asked, scanned, strict=True):
            assert (mine.item_id, mine.policy) == (theirs.item_id, theirs.policy)
            assert mine.label == theirs.label
            assert mine.n_documents == theirs.n_documents


@slow
@given(worlds(most=30, documents=9), st.sampled_from((1, 2, 5, 512)))
def test_an_index_of_all_grams_tells_what_a_scan_tells_or_leaves_it_open(world, cap):
    items, documents = world
    rows = [
        {"id": item.item_id, "question": item.question, "passage": item.passage or ""}
        for item in items
        if item.question.strip()
    ]
    if not rows or not any(document.split() for document in documents):
        return
    policies = ("contam", *POLICIES)
    with folder() as home:
        corpus, bench = home / "corpus.jsonl", write_items(home / "bench.jsonl", rows)
        corpus.write_bytes(WRITERS["jsonl"]([{"text": text} for text in documents]))
        scanned = contam.scan(corpus, bench, policies=policies, workers=1)
        index = make(corpus, home / "index", cap=cap)
        asked = contam.query(index, bench, policies=policies, workers=1)
        capped = asked.run["index"]["capped"]["grams"]
        for mine, theirs in zip(asked, scanned, strict=True):
            # Where grams are capped, not every document is counted, and nothing is cleared.
            assert mine.label == theirs.label or (capped and mine.label != "clean")
        if not capped:
            assert evidence(asked) == evidence(scanned)


@slow
@given(torn_worlds(), st.lists(torn_worlds().map(lambda world: world[1]), max_size=2))
def test_an_index_and_a_scan_agree_where_words_are_torn(world, others):
    items, document = world
    rows = [
        {"id": item.item_id, "question": item.question, "passage": item.passage} for item in items
    ]
    with folder() as home:
        corpus = home / "corpus"
        corpus.mkdir()
        texts = [document, *others]
        (corpus / "part.jsonl").write_bytes(WRITERS["jsonl"]([{"text": text} for text in texts]))
        bench = write_items(home / "bench.jsonl", rows)
        scanned = contam.scan(corpus, bench, policies=POLICIES, workers=1)
        asked = contam.query(make(corpus, home / "index"), bench, policies=POLICIES, workers=1)
        found, sure = evidence(asked), long_pairs(scanned, 8)
        assert {place: found.get(place) for place in sure} == sure
        for mine, theirs in zip(asked, scanned, strict=True):
            assert (mine.item_id, mine.label) == (theirs.item_id, theirs.label)
