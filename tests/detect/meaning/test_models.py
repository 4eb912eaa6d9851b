"""Models by local path: read as they are, known by their digests, refused when they are damaged."""

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import contam
from contam.detect.meaning.vectors import static_embedder
from contam.detect.policies.policy import get_policy
from contam.errors import ConfigError, PolicyError
from tests.detect.meaning.small_model import install
from tests.detect.meaning.test_meaning import ITEMS, TEXTS

FOLDER_VARIABLE = "CONTAM_MEANING_MODEL"
TYPES = {"float16": "F16", "float32": "F32", "int64": "I64", "int8": "I8"}
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


def put(folder, content, *, words=WORDS):
    """Write a model; its two digests."""
    files = {"model.safetensors": content, "tokenizer.json": tokenizer(words)}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [hashlib.sha256(data).hexdigest() for data in files.values()]


TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_table_of_vectors_in_a_folder_is_read(tmp_path, monkeypatch, kind):
    digests = put(tmp_path, safetensors(embedding__weight=TABLE.astype(kind)))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    embedder = static_embedder(*digests)
    found = embedder.word_vectors(["boat", "red sea", "unknown", ""])
    assert embedder.n_dimensions == 3
    assert found.tolist() == [TABLE[2].tolist(), (TABLE[1] + TABLE[3]).tolist(), [0, 1, 2], [0] * 3]


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
        safetensors(embeddings=TABLE, mapping=np.array([0, 1, 1, 0])),
        safetensors(embeddings=TABLE[:2]),
    ],
    ids=["empty", "byte", "cut", "cut head", "int8", "flat", "two", "nan", "rows of tokens",
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
