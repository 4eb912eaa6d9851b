"""Small tokenizers of every kind, trained here on the sentences of bench_fixtures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from collections.abc import Mapping

FILLER = Path(__file__).resolve().parents[2] / "bench_fixtures" / "filler"
UNKNOWN = "<unk>"
WORD_UNKNOWN = "[UNK]"
ANSWERS = [f"{word}: {letter}" for word in ("Answer", "answer") for letter in "ABCD"]
KINDS = ("byte_bpe", "byte_bpe_untrimmed", "space_bpe", "wordpiece", "unigram")


def sentences():
    """Every line of the filler."""
    return [
        line
        for path in sorted(FILLER.glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def make_tokenizer(kind, vocabulary=1500):
    if kind in {"byte_bpe", "byte_bpe_untrimmed"}:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.post_processor = processors.ByteLevel(trim_offsets=kind == "byte_bpe")
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|end|>", "<s>"],
            show_progress=False,
        )
    elif kind == "space_bpe":
        made = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True))
        made.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
        made.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
        bytes_ = [f"<0x{n:02X}>" for n in range(256)]
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=[UNKNOWN, *bytes_], show_progress=False
        )
    elif kind == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token=WORD_UNKNOWN))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocabulary,
            special_tokens=[WORD_UNKNOWN, "[CLS]", "[SEP]"],
            show_progress=False,
        )
    else:
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=vocabulary, unk_token=UNKNOWN, special_tokens=[UNKNOWN], show_progress=False
        )
    made.train_from_iterator(sentences() + ANSWERS * 50, trainer)
    if kind == "wordpiece":
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            special_tokens=[
                ("[CLS]", made.token_to_id("[CLS]")),
                ("[SEP]", made.token_to_id("[SEP]")),
            ],
        )
    return made


def save_tokenizer(folder, kind, **settings):
    path = folder / f"{kind}.json"
    made = make_tokenizer(kind, **settings)
    made.save(str(path))
    return path


def save_word_level(path: Path, vocab: Mapping[str, int], pattern: str) -> Path:
    """A tokenizer that splits by a pattern and looks the pieces up; `[UNK]` for all others."""
    split = {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip
    state = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": split, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }  # fmt: skip
    path.write_text(json.dumps(state))
    return path
