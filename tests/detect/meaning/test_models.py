"""Models by local path: read as they are, known by their digests, refused when they are damaged."""

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import contam
from contam.detect.meaning.vectors import TextVectors, load_embedder, static_embedder
from contam.detect.policies.policy import get_policy
from contam.errors import ConfigError, MissingExtraError, PolicyError
from tests.detect.meaning.onnx_file import table_model
from tests.detect.meaning.small_model import install
from tests.detect.meaning.test_meaning import ITEMS, TEXTS

FOLDER_VARIABLE = "CONTAM_MEANING_MODEL"
TYPES = {"float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64", "int8": "I8"}
WORDS = ["[none]", "red", "boat", "sea"]


def safetensors(**tensors):
    head, parts, at = {}, [], 0
    for name, array in tensors.items():
        data = array.tobytes()
        head[name.replace("__", ".")] = {
            "dtype": TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + len(data)],
        }
        parts.append(data)
        at += len(data)
    raw = json.dumps(head).encode()
    return len(raw).to_bytes(8, "little") + raw + b"".join(parts)


def tokenizer(words=WORDS):
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, "[none]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made.to_str().encode()


def put(folder, content, *, under="", words=WORDS):
    """Write a model; its two digests."""
    home = folder / under
    home.mkdir(parents=True, exist_ok=True)
    files = {"model.safetensors": content, "tokenizer.json": tokenizer(words)}
    for name, data in files.items():
        (home / name).write_bytes(data)
    return [hashlib.sha256(data).hexdigest() for data in files.values()]


TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("under", ["", "0_StaticEmbedding"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["embeddings", "embedding__weight", "anything"])
def test_a_table_of_vectors_in_a_folder_is_read(tmp_path, monkeypatch, under, kind, name):
    digests = put(tmp_path, safetensors(**{name: TABLE.astype(kind)}), under=under)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    embedder = static_embedder(*digests)
    found = embedder.word_vectors(["boat", "red sea", "unknown", ""])
    assert embedder.n_dimensions == 3
    assert found.tolist() == [TABLE[2].tolist(), (TABLE[1] + TABLE[3]).tolist(), [0, 1, 2], [0] * 3]


def test_tokens_that_share_vectors_and_have_weights_are_put_together(tmp_path, monkeypatch):
    content = safetensors(
        embeddings=TABLE[:2], mapping=np.array([0, 1, 1, 0]), weights=np.array([1.0, 2, 3, 4])
    )
    digests = put(tmp_path, content)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    found = static_embedder(*digests).word_vectors(["boat", "sea"])
    assert found.tolist() == [(3 * TABLE[1]).tolist(), (4 * TABLE[0]).tolist()]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01",
        safetensors(embeddings=TABLE)[:-4],
        safetensors(embeddings=TABLE)[:30],
        safetensors(embeddings=TABLE.astype(np.int8)),
        safetensors(embeddings=TABLE[0]),
        safetensors(one=TABLE, other=TABLE),
        safetensors(embeddings=TABLE * np.float32("nan")),
        safetensors(embeddings=TABLE, mapping=np.array([0, 1, 2, 4])),
        safetensors(embeddings=TABLE, mapping=np.array([0, 1, 2, -1])),
        safetensors(embeddings=TABLE, weights=np.ones(3)),
        safetensors(embeddings=TABLE[:2]),
    ],
    ids=["empty", "byte", "cut", "cut head", "int8", "flat", "two", "nan", "far", "negative", "few",
         "fewer than tokens"],
)  # fmt: skip
def test_a_damaged_or_other_file_is_refused(tmp_path, monkeypatch, content):
    digests = put(tmp_path, content)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError) as refused:
        static_embedder(*digests)
    assert str(tmp_path) in refused.value.message


def test_a_missing_model_is_one_line_that_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError) as refused:
        static_embedder("0" * 64, "1" * 64)
    assert FOLDER_VARIABLE in refused.value.hint
    assert "0" * 64 in refused.value.hint
    assert "\n" not in refused.value.message + refused.value.hint


def test_a_scan_uses_the_named_folder_and_gives_what_the_package_gives(tmp_path, monkeypatch):
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    policy, texts = tmp_path / "site/small.toml", [{"text": text} for text in TEXTS.values()]
    by_package = contam.scan(texts, ITEMS, policies=str(policy))
    (tmp_path / "moved").mkdir()
    home = tmp_path / "site/wordllama"
    shutil.move(home / "weights/l2_supercat_256.safetensors", tmp_path / "moved/model.safetensors")
    shutil.move(
        home / "tokenizers/l2_supercat_tokenizer_config.json", tmp_path / "moved/tokenizer.json"
    )
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "moved"))
    by_folder = contam.scan(texts, ITEMS, policies=str(policy))
    assert by_folder.verdicts == by_package.verdicts
    assert "suspect" in {verdict.label for verdict in by_folder}
    assert os.fspath(tmp_path) not in json.dumps(get_policy(policy).spec.to_dict())


@pytest.mark.parametrize("lacking", ["thresholds", "rare_from", "code_similarity"])
def test_another_model_needs_thresholds_of_its_own(tmp_path, lacking):
    policy = install(tmp_path)
    assert get_policy(policy).spec.fingerprint() != get_policy("contam-meaning").spec.fingerprint()
    lines = policy.read_text().splitlines()
    policy.write_text("\n".join(line for line in lines if not line.startswith(lacking)))
    with pytest.raises(PolicyError, match=f"without {lacking}") as refused:
        get_policy(policy)
    assert "measure" in refused.value.hint


def test_changes_that_keep_the_model_need_no_others(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "contam-meaning"\nthresholds = {suspect = 0.8}\n')
    assert get_policy(path).spec.threshold("suspect") == 0.8


def put_onnx(folder, content, words=WORDS):
    """Write a model of texts; its two digests."""
    (folder / "onnx").mkdir(parents=True)
    files = {"onnx/model.onnx": content, "tokenizer.json": tokenizer(words)}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [hashlib.sha256(data).hexdigest() for data in files.values()]


def spec_of(**parameters):
    start = get_policy("contam-meaning").spec
    return start.with_changes({"id": "x", "parameters": parameters})


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_an_onnx_model_gives_texts_their_vectors_and_the_static_one_words(
    tmp_path, monkeypatch, pooling
):
    own = put(tmp_path, safetensors(embeddings=TABLE), under="0_StaticEmbedding")
    table = np.array([[1, 0], [3, 4], [0, 2], [5, 0]], np.float32)
    texts = put_onnx(tmp_path / "other", table_model(table))
    shutil.copytree(tmp_path / "other/onnx", tmp_path / "onnx")
    shutil.copy(tmp_path / "other/tokenizer.json", tmp_path / "tokenizer.json")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    embedder = load_embedder(
        spec_of(
            weights=own[0], tokenizer=own[1], text_model=texts[0], text_tokenizer=texts[1],
            text_pooling=pooling,
        )
    )  # fmt: skip
    expected = {"mean": table[[1, 2, 3]].mean(axis=0), "cls": table[1]}[pooling]
    found = TextVectors(embedder).of("red boat sea")
    assert found.tolist() == pytest.approx((expected / np.linalg.norm(expected)).tolist())
    assert TextVectors(embedder).of("").tolist() == [0, 0]
    assert embedder.n_dimensions == 2
    assert embedder.word_vectors(["boat"]).tolist() == [TABLE[2].tolist()]
    # Long texts are cut, and not an error.
    assert np.isfinite(TextVectors(embedder).of("boat " * 2000)).all()


@pytest.mark.parametrize("kind", ["not a model", "cut", "asks for more", "pooling", "digest"])
def test_an_onnx_model_that_cannot_be_used_is_refused(tmp_path, monkeypatch, kind):
    own = put(tmp_path, safetensors(embeddings=TABLE), under="0_StaticEmbedding")
    whole = table_model(
        TABLE, extra_input="pixels" if kind == "asks for more" else "attention_mask"
    )
    content = {"not a model": b"nothing", "cut": whole[:-30]}.get(kind, whole)
    texts = put_onnx(tmp_path / "folder", content)
    shutil.copytree(tmp_path / "0_StaticEmbedding", tmp_path / "folder/0_StaticEmbedding")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "folder"))
    with pytest.raises((ConfigError, PolicyError)) as refused:
        load_embedder(
            spec_of(
                weights=own[0], tokenizer=own[1], text_tokenizer=texts[1],
                text_model="0" * 64 if kind == "digest" else texts[0],
                text_pooling="max" if kind == "pooling" else "mean",
            )
        )  # fmt: skip
    assert refused.value.hint


def test_without_onnxruntime_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    import contam.extras

    own = put(tmp_path, safetensors(embeddings=TABLE), under="0_StaticEmbedding")
    texts = put_onnx(tmp_path / "other", table_model(TABLE))
    shutil.copytree(tmp_path / "other/onnx", tmp_path / "onnx")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    found = contam.extras.find_spec
    monkeypatch.setattr(
        contam.extras, "find_spec", lambda name: None if name == "onnxruntime" else found(name)
    )
    with pytest.raises(MissingExtraError) as error:
        load_embedder(
            spec_of(weights=own[0], tokenizer=own[1], text_model=texts[0], text_tokenizer=own[1])
        )
    assert "contam[onnx]" in error.value.hint


def test_a_scan_compares_texts_by_the_onnx_model(tmp_path, monkeypatch):
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    lines = (tmp_path / "site/small.toml").read_text().splitlines()
    # Every text has the same vector but those with "feather".
    words = ["[none]", "feather"]
    model, own = put_onnx(
        tmp_path / "texts", table_model(np.array([[1, 0], [-1, 0]], np.float32)), words
    )
    policy = tmp_path / "texts.toml"
    policy.write_text(
        "\n".join(lines).replace("small-meaning", "by-texts")
        + f'\ntext_model = "{model}"\ntext_tokenizer = "{own}"\ntext_pooling = "cls"\n'
    )
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "texts"))
    found = contam.scan(
        [{"text": TEXTS["rephrased"]}],
        ITEMS[:1],
        policies=[str(policy), str(tmp_path / "site/small.toml")],
    )
    by_texts, by_words = sorted(found, key=lambda verdict: verdict.policy)
    assert (by_texts.label, by_words.label) == ("suspect", "suspect")
    assert by_texts.score == 1.0 != by_words.score
