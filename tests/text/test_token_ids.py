"""Ids are decoded as the library decodes them, and a tokenizer that did not make them is found out."""

import hashlib
import json

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders

from contam.errors import ConfigError, UsageError
from contam.text.token_ids import UnknownIdError, load_decoder, tokenizer_file
from tests.text.tokenizer_files import make_tokenizer, sentences

KINDS = {"byte_bpe": True, "space_bpe": True, "unigram": True, "wordpiece": False}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each kind of tokenizer, with the decoder that models of the kind have."""
    folder = tmp_path_factory.mktemp("tokenizers")
    made = {}
    for kind in KINDS:
        tokenizer = make_tokenizer(kind)
        tokenizer.decoder = {
            "byte_bpe": decoders.ByteLevel(),
            "space_bpe": decoders.Sequence(
                [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
            ),
            "unigram": decoders.Metaspace(),
            "wordpiece": decoders.WordPiece(),
        }[kind]  # fmt: skip
        state = json.loads(tokenizer.to_str())
        # A trainer makes special tokens of bytes, which models have in the vocabulary alone.
        state["added_tokens"] = [
            one for one in state["added_tokens"] if "<0x" not in one["content"]
        ]
        made[kind] = folder / f"{kind}.json"
        made[kind].write_text(json.dumps(state))
    return made


def decoder(path, *special):
    return load_decoder(str(path), hashlib.sha256(path.read_bytes()).hexdigest(), special)


@pytest.mark.parametrize("kind", KINDS)
def test_random_ids_are_decoded_as_by_the_library(files, kind):
    one, library = decoder(files[kind]), Tokenizer.from_file(str(files[kind]))
    assert one.by_table == KINDS[kind]
    plain = [
        n for n in range(one.n_ids) if n not in one.special and "<0x" not in library.id_to_token(n)
    ]
    random = np.random.default_rng(7)
    for _ in range(50):
        ids = random.choice(plain, 60).astype(np.uint32)
        texts = one.decode(ids, np.array([0, 60], np.int64))
        # Of bytes that are no UTF-8, some become one mark and some several.
        marks = [
            text.split("\ufffd")
            for text in (texts.data.tobytes().decode(), library.decode(ids.tolist()))
        ]
        assert [part for part in marks[0] if part] == [part for part in marks[1] if part]


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_come_back_and_tell_where_their_tokens_begin(files, kind):
    one, library = decoder(files[kind]), Tokenizer.from_file(str(files[kind]))
    for text in [*sentences()[:40], "Ünï çødé ☃ 漢字"]:
        ids = np.array(library.encode(text, add_special_tokens=False).ids, np.uint32)
        found = one.decode(ids, np.array([0, len(ids)], np.int64)).data.tobytes().decode()
        if one.special.isdisjoint(ids.tolist()):
            assert found == library.decode(ids.tolist(), skip_special_tokens=False)
        if one.special.isdisjoint(ids.tolist()):
            starts = one.places(ids)
            assert starts(len(ids)) == len(found)
            # What stands before a token is the text of the tokens before it.
            for n in range(0, len(ids), 7):
                before = library.decode(ids[:n].tolist(), skip_special_tokens=False)
                if "\ufffd" not in before:
                    assert found[: starts(n)] == before


def samples(path):
    library = Tokenizer.from_file(str(path))
    texts = [" ".join(sentences()[n : n + 5]) for n in range(0, 100, 5)]
    return [
        np.array(library.encode(text, add_special_tokens=False).ids, np.uint32) for text in texts
    ]


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("named", KINDS)
def test_only_the_tokenizer_that_made_tokens_passes(files, made, named):
    problem = decoder(files[named]).problem(samples(files[made]))
    assert (problem == "") == (made == named)


@pytest.mark.parametrize("shift", [1, 3, 256])
def test_a_vocabulary_in_another_order_does_not_pass(files, shift):
    one = decoder(files["byte_bpe"])
    assert one.problem([(ids + shift) % np.uint32(one.n_ids) for ids in samples(files["byte_bpe"])])


def test_added_ids_are_breaks_and_others_are_unknown(files):
    ids = samples(files["byte_bpe"])[0]
    one = decoder(files["byte_bpe"])
    outside = np.array([*ids[:5], one.n_ids, *ids[5:]], np.uint32)
    offsets = np.array([0, len(outside)], np.int64)
    with pytest.raises(UnknownIdError) as caught:
        one.decode(outside, offsets)
    assert (caught.value.place, caught.value.found) == (5, one.n_ids)
    text = decoder(files["byte_bpe"], one.n_ids).decode(outside, offsets).data.tobytes().decode()
    library = Tokenizer.from_file(str(files["byte_bpe"]))
    assert text == library.decode(ids[:5].tolist()) + "\n" + library.decode(ids[5:].tolist())


def test_ids_of_words_are_not_special(files):
    with pytest.raises(ConfigError):
        decoder(files["byte_bpe"], int(samples(files["byte_bpe"])[0][0]))


def test_a_name_is_looked_up_in_the_cache_of_the_hub(files, tmp_path, monkeypatch):
    folder = tmp_path / "models--some--model"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc\n")
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "snapshots" / "abc" / "tokenizer.json").write_bytes(files["unigram"].read_bytes())
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert tokenizer_file("some/model") == folder / "snapshots" / "abc" / "tokenizer.json"
    with pytest.raises(UsageError):
        tokenizer_file("other/model")
