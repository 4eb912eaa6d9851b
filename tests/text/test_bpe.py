import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from contam.errors import ConfigError, UsageError
from contam.text.bpe import LONGEST_STRETCH, find_stretches, hash_ids, hash_unknown, load_tokenizer
from contam.text.token_hash import token_hash
from tests.text.tokenizer_files import KINDS, make_tokenizer, save_tokenizer

TEXTS = [
    "",
    " \n\t ",
    "The keeper moved the bees before dawn; nobody noticed.",
    "  Ünïcödé,  naïve café e\u0301 — ﬁnd ﷺ １２３  ",
    "emoji 🤗🦊 👩‍👩‍👧 and 中文字符 mixed\nover\r\nlines\u2028and\u00a0blanks\u3000here",
    "<s> [CLS] <|end|> <unk> are plain words",
    "def f(x):\n    return x  # twice\n",
    "日本語" * 50,
    "\ufeff\u200bזה טקסט בעברית",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    return {kind: save_tokenizer(folder, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def loaded(files):
    return {kind: load_tokenizer(path) for kind, path in files.items()}


def pack(texts):
    raw = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in raw])]).astype(np.int64)
    return np.frombuffer(b"".join(raw), np.uint8), offsets


def pieces(tokenizer, text):
    raw = text.encode()
    return [raw[a:b].decode() for a, b in tokenizer.encode_text(text).spans.tolist()]


def test_hash_of_an_id_is_the_token_hash_of_its_marked_bytes():
    ids = [0, 1, 97, 255, 50256, 2**32 - 1]
    expected = [token_hash(one.to_bytes(7, "little") + b"\xff") for one in ids]
    assert hash_ids(np.array(ids, np.uint32)).tolist() == expected


def test_hashes_are_frozen_and_in_the_format_document(repository):
    frozen = {
        0: "1322e1736173f022",
        1: "729a6acc38073498",
        50256: "c215cdb143940ce7",
        128000: "3c4124409dbd1524",
    }
    assert [f"{one:016x}" for one in hash_ids(np.array(list(frozen), np.uint32)).tolist()] == list(
        frozen.values()
    )
    assert f"{hash_unknown('犬'.encode()):016x}" == "854430ad66f7a7e7"
    page = (repository / "docs" / "normaliser.md").read_text(encoding="utf-8")
    for number, digest in frozen.items():
        assert f"| `{digest}` | id {number} |" in page
    assert "| `854430ad66f7a7e7` | unknown `犬` |" in page


def test_a_token_is_never_taken_for_a_word():
    # "a" is byte 97: the mark keeps token 97 apart from it.
    assert hash_ids(np.array([97], np.uint32))[0] != token_hash(b"a")


@pytest.mark.parametrize("kind", KINDS)
def test_spans_cut_whole_code_points_out_of_the_original(loaded, kind):
    for text in TEXTS:
        batch = loaded[kind].encode_text(text)
        raw = text.encode()
        assert (np.diff(batch.spans[:, 0]) >= 0).all()
        for begin, end in batch.spans.tolist():
            piece = raw[begin:end].decode()
            assert piece.strip() == piece != ""
        # Nothing but white space and characters the normaliser drops lies outside the spans.
        if kind.startswith("byte_bpe"):
            covered = np.zeros(len(raw), bool)
            for begin, end in batch.spans.tolist():
                covered[begin:end] = True
            assert bytes(np.frombuffer(raw, np.uint8)[~covered]).decode().strip() == ""


@pytest.mark.parametrize("kind", KINDS)
def test_texts_do_not_depend_on_their_neighbours(loaded, kind):
    data, offsets = pack(TEXTS)
    batch = loaded[kind].encode(data, offsets)
    assert len(batch.starts) == len(TEXTS) + 1
    for at, text in enumerate(TEXTS):
        alone = loaded[kind].encode_text(text)
        part = slice(batch.starts[at], batch.starts[at + 1])
        assert batch.hashes[part].tolist() == alone.hashes.tolist()
        assert batch.spans[part].tolist() == alone.spans.tolist()


def test_tokens_are_those_of_the_library(files, loaded):
    text = "The keeper moved the bees before dawn; nobody noticed."
    plain = Tokenizer.from_file(str(files["byte_bpe"]))
    ids = plain.encode(" " + text, add_special_tokens=False).ids
    assert (
        loaded["byte_bpe"].encode_text(text).hashes.tolist()
        == hash_ids(np.array(ids, np.uint32)).tolist()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_first_words_read_as_they_do_further_on(loaded, kind):
    sentence = "the bees before dawn"
    alone = loaded[kind].encode_text(sentence).hashes.tolist()
    inside = loaded[kind].encode_text("a keeper moved " + sentence).hashes.tolist()
    assert inside[-len(alone) :] == alone


@pytest.mark.parametrize("kind", KINDS)
def test_white_space_between_words_does_not_matter(loaded, kind):
    words = TEXTS[2].split()
    expected = loaded[kind].encode_text(" ".join(words)).hashes.tolist()
    for blank in ("\n", "  ", "\r\n\r\n", "\t", "\u00a0", "\u3000 ", " \n    "):
        assert loaded[kind].encode_text(blank.join(words)).hashes.tolist() == expected
        assert pieces(loaded[kind], blank + blank.join(words) + blank) == pieces(
            loaded[kind], " ".join(words)
        )


def test_special_tokens_in_a_text_are_text(files, loaded):
    assert "<s>" not in pieces(loaded["byte_bpe"], "x <s> y")
    assert "".join(pieces(loaded["byte_bpe"], "x <s> y")) == "x<s>y"
    assert len(Tokenizer.from_file(str(files["wordpiece"])).encode("bees").ids) > 2
    assert "[CLS]" not in pieces(loaded["wordpiece"], "bees")


def test_code_points_split_over_tokens_are_each_tokens_whole_span(loaded):
    spans = loaded["byte_bpe"].encode_text("🤗").spans.tolist()
    assert len(spans) > 1
    assert {tuple(span) for span in spans} == {(0, 4)}


def test_unknown_text_is_equal_only_to_itself(loaded):
    tokenizer = loaded["wordpiece"]
    one, same, other = (tokenizer.encode_text(text).hashes.tolist() for text in ("ᚠ", "ᚠ", "ᚢ"))
    assert one == same == [hash_unknown("ᚠ".encode())]
    assert one != other


def test_truncation_padding_and_dropout_of_the_file_are_left_out(tmp_path):
    made = make_tokenizer("byte_bpe")
    plain = tmp_path / "plain.json"
    made.save(str(plain))
    made.enable_truncation(4)
    made.enable_padding(length=64)
    made.model.dropout = 0.5
    odd = tmp_path / "odd.json"
    made.save(str(odd))
    assert json.loads(odd.read_text())["model"]["dropout"] == 0.5
    text = TEXTS[2] * 3
    expected = load_tokenizer(plain).encode_text(text).hashes.tolist()
    for _ in range(3):
        assert load_tokenizer(odd).encode_text(text).hashes.tolist() == expected


def test_long_stretches_are_cut_and_nothing_is_lost(loaded):
    words = "bees keep moving " * 12000
    cut = loaded["byte_bpe"].encode_text(words)
    once = loaded["byte_bpe"].encode_text("bees keep moving").hashes.tolist()
    assert cut.hashes.tolist() == once * 12000
    solid = "x" * (3 * LONGEST_STRETCH + 5)
    assert "".join(pieces(loaded["byte_bpe"], solid)) == solid


@given(st.text(alphabet="ab \n\t\u3000é", max_size=60))
def test_stretches_hold_all_that_is_not_white_space(text):
    found = list(find_stretches(text, 0, len(text)))
    assert "".join(text[a:b] for a, b in found).replace(" ", "") == "".join(text.split())
    for begin, end in found:
        stretch = text[begin:end]
        assert stretch == " ".join(stretch.split()) != ""


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, UsageError, "neither word nor char nor a file"),
        (b"", ConfigError, "is not a tokenizer file"),
        (b"not json", ConfigError, "is not a tokenizer file"),
        (b"[1, 2]", ConfigError, 'it has no "model"'),
        (b'{"vocab": {}}', ConfigError, 'it has no "model"'),
        (b'{"model": {"type": "BPE"}}', ConfigError, "is not a tokenizer file"),
        (b"\xff\xfe\x00", ConfigError, "is not a tokenizer file"),
    ],
)
def test_what_is_no_tokenizer_is_refused_in_a_line(tmp_path, content, error, words):
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error) as caught:
        load_tokenizer(path)
    assert words in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_tokenizer_without_a_token_for_unknown_text_says_so(tmp_path, files):
    state = json.loads(files["unigram"].read_text(encoding="utf-8"))
    state["model"]["unk_id"] = None
    path = tmp_path / "none.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_tokenizer(path).encode_text("ᚠᚢᚦ")
    assert "cannot encode a text" in caught.value.message
