"""Which documents go, and where in them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.cleaning.choice import MASK, Choice, Found, in_original, joined, widened, within_lines
from contam.detect.chunk_scan import scan_chunks, start_collections
from contam.detect.match.pieces import Hits
from contam.detect.plan import ScanParameters, make_plan
from contam.detect.policies.policy import list_policies
from contam.detect.scan import open_scan
from contam.errors import ShardError
from contam.tables.edits import edited
from tests.cleaning.inputs import _OTHER, question, whole


def spans_in(length):
    marks = st.sets(st.integers(0, length), max_size=8).map(sorted)
    return marks.map(lambda found: tuple(zip(found[::2], found[1::2], strict=False)))


@given(st.data(), st.sampled_from([None, MASK]))
def test_stretches_of_an_edited_text_are_found_in_the_original(data, replacement):
    text = data.draw(st.text("abc é😀", max_size=30))
    taken = joined(data.draw(spans_in(len(text))))
    after = edited(text, taken, replacement)
    later = joined(data.draw(spans_in(len(after))))
    together = in_original(later, taken, replacement)
    assert joined(together) == together
    # All that was taken first is taken again, and all characters that are taken later.
    covered = {place for start, end in together for place in range(start, end)}
    assert {place for start, end in taken for place in range(start, end)} <= covered
    if replacement is None:
        assert edited(text, together, None) == edited(after, later, None)
    kept = [place for place in range(len(text)) if not any(a <= place < b for a, b in taken)]
    new_places = [
        place
        for place in range(len(after))
        if replacement is None or not _in_mask(place, taken, len(replacement))
    ]
    moved = dict(zip(new_places, kept, strict=True))
    for start, end in later:
        assert {moved[place] for place in range(start, end) if place in moved} <= covered


def _in_mask(place, taken, n_new):
    shift = 0
    for start, end in taken:
        if start - shift <= place < start - shift + n_new:
            return True
        shift += end - start - n_new
    return False


def test_stretches_are_joined_widened_and_cut_at_lines():
    assert joined([(5, 9), (0, 2), (8, 12), (2, 3), (20, 20)]) == ((0, 3), (5, 12))
    assert widened([(3, 5), (9, 10)], 2, 11) == ((1, 11),)
    assert within_lines([(1, 8)], "ab\n\ncd\nef") == ((1, 2), (4, 6), (7, 8))


def hits_of(rows):
    """Hits of (item, row, counted, exposure, spans), all of shard 0."""
    spans = [span for *_, found in rows for span in found]
    columns = list(zip(*rows, strict=True))
    return Hits(
        item=np.array(columns[0], np.int32),
        shard=np.zeros(len(rows), np.int32),
        row=np.array(columns[1], np.int64),
        counted=np.array(columns[2], np.bool_),
        exposure=np.array(columns[3], np.int8),
        n_spans=np.array([len(found) for *_, found in rows], np.int32),
        start=np.array([start for start, _ in spans], np.int32),
        end=np.array([end for _, end in spans], np.int32),
    )


def test_labels_exposures_and_weights_together():
    first = hits_of(
        [
            (0, 4, [True, False], 1, [(0, 5)]),
            (1, 4, [True, True], 2, [(3, 9)]),
            (1, 7, [False, True], 2, [(2, 4), (8, 9)]),
            (2, 8, [True, True], 2, []),
        ]
    )
    second = hits_of([(0, 7, [True], 2, [(4, 6)])])
    choice = Choice(
        policies=((0, 2), (1,)),
        wanted=np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]], np.bool_),
        exposures=np.array([0, 0, 1, 0, 0], np.bool_),
        weight=np.array([0.5, 0.5, 1.0]),
    )
    both = {0: first, 1: second}
    assert choice.documents(both, {}) == [Found(7, (0, 1), (1, 2), ((2, 6), (8, 9)))]
    anything = Choice(
        policies=choice.policies,
        wanted=choice.wanted,
        exposures=np.ones(5, np.bool_),
        weight=np.array([0.9999999999, 1e-10, 0.0]),
    )
    assert [found.row for found in anything.documents(both, {})] == [4, 7]
    assert choice.documents({}, {}) == []
    # The document holds both items: one that is harmless leaves too little of it.
    assert choice.documents(both, {7: frozenset({(1, 2)})}) == []
    kept = anything.documents(both, {4: frozenset({(0, 0), (0, 1), (0, 2)})})
    assert [found.row for found in kept] == [7]


def test_hits_are_the_same_in_any_order():
    draw = np.random.default_rng(5)
    tables = []
    for _ in range(30):
        n = int(draw.integers(1, 9))
        n_spans = draw.integers(0, 4, n).astype(np.int32)
        start = draw.integers(0, 99, n_spans.sum()).astype(np.int32)
        rows = draw.integers(0, 10**6, n)
        tables.append(
            Hits(
                item=draw.integers(0, 9, n).astype(np.int32),
                shard=draw.integers(0, 5, n).astype(np.int32),
                row=rows, counted=np.ones((n, 2), np.bool_), exposure=np.ones(n, np.int8),
                n_spans=n_spans, start=start, end=start + 1,
            )
        )  # fmt: skip
    found = [Hits.concat(tables[::order]).in_order() for order in (1, -1)]
    assert len(found[0]) == sum(map(len, tables))
    for name in ("item", "shard", "row", "counted", "n_spans", "start", "end"):
        assert np.array_equal(*(getattr(one, name) for one in found))


def test_every_document_that_a_policy_counts_is_a_hit(corpus, items):
    policies = tuple(policy.id for policy in list_policies())
    parameters = ScanParameters(policies=policies, every_hit=True, max_evidence=1)
    opened, plan = open_scan([corpus], items, parameters)
    whole_corpus = scan_chunks(plan, opened, workers=2)
    seen, found = [0] * len(plan.views), 0
    for at in plan.view_of:
        collection = whole_corpus.collections[at]
        n_documents = collection.totals(seen[at]).n_documents
        hits = collection.hits()
        mine = hits.take(np.flatnonzero(hits.counted[:, seen[at]]))
        assert np.array_equal(np.bincount(mine.item, minlength=len(plan.items)), n_documents)
        found += int(n_documents.sum())
        seen[at] += 1
    # decon looks for none of these short items; all others find what was planted.
    assert found >= 9 * (len(policies) - 1)
    assert all(c.hits() is None for c in start_collections(make_plan(items, ScanParameters())))


def corpus_of(folder, *texts):
    folder.mkdir()
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    (folder / "a.jsonl").write_text(lines)
    return folder


def texts_after(out):
    lines = (out / "corpus" / "a.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


@pytest.mark.parametrize("action", ["cut", "mask"])
def test_words_that_cutting_brings_together_are_found_and_cut_too(items, tmp_path, action):
    words = question("orchard", 0).split()
    # Neither half is a run of 13 words, and what stands between them is another item.
    halves = " ".join(words[:8]), " ".join(words[8:])
    text = f"{_OTHER}{halves[0]} {question('harbour', 0)} {halves[1]} {_OTHER}"
    folder = corpus_of(tmp_path / "corpus", text, _OTHER)
    before = contam.scan(folder, items, policies="lmeval-13")
    assert [verdict.item_id for verdict in before.flagged()] == ["h0"]
    done = contam.clean(
        folder, items, tmp_path / "out", action=action, policies="lmeval-13", keep_removed=True
    )
    assert done.record["proof"]["passes"] == 2
    assert contam.scan(tmp_path / "out" / "corpus", items, policies="lmeval-13").n_flagged == 0
    edited_text, other = texts_after(tmp_path / "out")
    assert other == _OTHER
    assert len(edited_text) < len(text) - len(question("harbour", 0))
    assert not {"carry", "tired", "farmer"} & set(edited_text.split())


def test_what_still_matches_after_three_passes_is_an_error(items, tmp_path, monkeypatch):
    folder = corpus_of(tmp_path / "corpus", whole("orchard", 0))
    monkeypatch.setattr("contam.cleaning.choice.joined", lambda _: ())
    with pytest.raises(ShardError, match="still match"):
        contam.clean(folder, items, tmp_path / "out", action="mask")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("policy", [policy.id for policy in list_policies()])
def test_no_policy_reads_the_mask_as_a_word(tmp_path, policy):
    # Long enough for decon, which gives no weight to what all items of a benchmark ask.
    text, other = (
        " ".join(question("orchard", number) for number in numbers)
        for numbers in ((0, 1, 2), (3, 4))
    )
    items = tmp_path / "items.jsonl"
    asked = ({"question": each, "answer": "42 apples"} for each in (text, other))
    items.write_text("".join(json.dumps(item) + "\n" for item in asked))
    words = f"{text} 42 apples".split()
    masked = f" {MASK} ".join(words), f"{MASK}\n".join(words), f"({MASK}) ".join(words)
    plain = corpus_of(tmp_path / "plain", *["\n".join(words)] * 3)
    folder = corpus_of(tmp_path / "masked", *masked)
    verdicts = [
        [(verdict.label, verdict.score) for verdict in contam.scan(each, items, policies=policy)]
        for each in (plain, folder)
    ]
    assert verdicts[0] == verdicts[1]
    assert max(score for _, score in verdicts[0]) > 0.5


def test_edges_repeats_and_characters_of_any_width(items, tmp_path):
    item = whole("orchard", 0)
    texts = [
        item,
        f"😀{item}",
        f"{item}\U0001f469\u200d\U0001f680",
        f"{item} {_OTHER}{item}é",
        item,
    ]
    folder = corpus_of(tmp_path / "corpus", *texts)
    contam.clean(folder, items, tmp_path / "out", action="cut")
    after = texts_after(tmp_path / "out")
    assert [text[:1] for text in after[1:2]] == ["😀"]
    assert after[2].endswith("\U0001f469\u200d\U0001f680")
    assert after[3].endswith("é")
    assert all(len(new) < len(old) / 2 + len(_OTHER) for old, new in zip(texts, after, strict=True))
    assert after[0] == after[4]
    assert contam.scan(tmp_path / "out" / "corpus", items).n_flagged == 0
