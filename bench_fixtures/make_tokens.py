"""Write some documents of the corpus as token ids, each format by the package it belongs to.

    python -m bench_fixtures.make_tokens

needs datatrove, megatron-core (with torch) and mosaicml-streaming. What it writes is committed,
so that nobody else does. The tokenizer is trained on the same documents.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
OUT = HERE / "tokens"
END = "<|endoftext|>"
#: Rows of packed formats.
ROW = 256


def documents() -> list[str]:
    """The documents with an item in them, of one shard, and as many others."""
    texts = pq.read_table(HERE / "corpus" / "part-000.parquet")["text"].to_pylist()
    return [text for text in texts if text][:60]


def train(texts: list[str]) -> Tokenizer:
    """A small tokenizer of byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def write_megatron(ids: list[list[int]]) -> None:
    """Megatron: a sequence each, with an end token."""
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    folder = OUT / "megatron"
    folder.mkdir()
    builder = IndexedDatasetBuilder(str(folder / "part.bin"), dtype=np.uint16)
    for one in ids:
        builder.add_document(torch.tensor([*one, 0]), [len(one) + 1])
    builder.finalize(str(folder / "part.idx"))


def write_datatrove(texts: list[str]) -> None:
    """datatrove: `.ds` and its index."""
    from datatrove.data import Document
    from datatrove.pipeline.tokens import DocumentTokenizer

    # The place of the tokenizer gets into the files.
    with contextlib.chdir(OUT):
        step = DocumentTokenizer(
            str(OUT / "datatrove"), tokenizer_name_or_path="tokenizer.json", eos_token=END,
            shuffle_documents=False, save_filename="part",
        )  # fmt: skip
        step.run((Document(text=text, id=str(n)) for n, text in enumerate(texts)), 0, 1)


def write_mds(ids: list[list[int]]) -> None:
    """MDS: a document a row, and packed rows, compressed."""
    from streaming import MDSWriter

    with MDSWriter(out=str(OUT / "mds"), columns={"tokens": "ndarray:int32", "id": "str"}) as out:
        for n, one in enumerate(ids):
            out.write({"tokens": np.array([*one, 0], np.int32), "id": f"doc-{n}"})
    flat = np.array([token for one in ids for token in (*one, 0)], np.int64)
    columns = {"tokens": "bytes"}
    with MDSWriter(out=str(OUT / "mds-packed"), columns=columns, compression="zstd:7") as out:
        for at in range(0, len(flat) - ROW + 1, ROW):
            out.write({"tokens": flat[at : at + ROW].tobytes()})


def main() -> None:
    """Write all of it anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    texts = documents()
    tokenizer = train(texts)
    tokenizer.save(str(OUT / "tokenizer.json"), pretty=False)
    ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    write_megatron(ids)
    write_datatrove(texts)
    write_mds(ids)


if __name__ == "__main__":
    main()
