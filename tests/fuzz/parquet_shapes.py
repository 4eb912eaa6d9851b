"""Parquet files of several writers and forms, and damaged copies of them, the same for each number."""

from __future__ import annotations

import base64
import io
import random
import tempfile
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption

N_ROWS = 120
TEXTS = [f"the lantern keeper of tower {at % 9} counts {at} steps" for at in range(N_ROWS)]
TAIL = 8


def _columns() -> dict:
    return {
        "id": list(range(N_ROWS)),
        "text": TEXTS,
        "tags": [["a", "b"], [], None] * (N_ROWS // 3),
        "meta": [{"url": "u", "score": 0.5}] * N_ROWS,
        "messages": [[{"role": "user", "content": "hello"}]] * N_ROWS,
    }


def _written(**options) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(_columns()), out, **options)
    return out.getvalue()


def _by_duckdb() -> bytes:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
        path = Path(folder, "a.parquet")
        db.from_arrow(pa.table(_columns())).write_parquet(str(path), row_group_size=40)
        return path.read_bytes()


class _Kms(encryption.KmsClient):
    """Wraps keys by no means at all: nothing here is a secret."""

    def __init__(self, _config: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _master: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, _master: str) -> bytes:
        return base64.b64decode(wrapped)


def encrypted(*, plain_footer: bool, columns: tuple[str, ...] = ("text",)) -> bytes:
    """A file with encrypted columns, and a footer that is encrypted, too, or not."""
    factory = encryption.CryptoFactory(_Kms)
    how = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": list(columns)}, plaintext_footer=plain_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    return _written(encryption_properties=properties)


@cache
def shapes() -> dict[str, bytes]:
    """Files by what is special in them; all hold `TEXTS` in the column `text`."""
    deltas = {"id": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY"}
    return {
        "plain": _written(use_dictionary=False, compression="none"),
        "dictionary": _written(compression="zstd"),
        "many row groups": _written(row_group_size=7, compression="snappy"),
        "second pages": _written(data_page_version="2.0", compression="gzip"),
        "checksums": _written(write_page_checksum=True, write_page_index=True),
        "deltas": _written(
            use_dictionary=["tags", "meta", "messages"], column_encoding=deltas, version="2.6"
        ),
        "no schema of Arrow": _written(store_schema=False, write_statistics=False),
        "DuckDB": _by_duckdb(),
        "encrypted column": encrypted(plain_footer=True),
        "encrypted footer": encrypted(plain_footer=False),
    }


def mutant(number: int) -> tuple[str, str, bytes]:
    """The damaged file of a number: its shape, where it is damaged, its bytes."""
    rng = random.Random(number)
    names = list(shapes())
    name = names[number % len(names)]
    whole = shapes()[name]
    length = int.from_bytes(whole[-TAIL:][:4], "little")
    pages = bytearray(whole[: -TAIL - length])
    footer = bytearray(whole[-TAIL - length : -TAIL])
    where = "pages" if rng.random() < 0.25 else "footer"
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        _damage(pages if where == "pages" else footer, rng)
    return name, where, bytes(pages + footer + len(footer).to_bytes(4, "little") + whole[-4:])


def _damage(part: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(part))
    some = rng.randbytes(rng.randint(1, 4))
    other = rng.randrange(len(part))
    match rng.randrange(8):
        case 0:
            part[at] ^= 1 << rng.randrange(8)
        case 1:
            part[at] = some[0]
        case 2:
            del part[at : at + len(some)]
        case 3:
            part[at:at] = some
        case 4:
            part[at] = rng.choice((0x00, 0x01, 0x7F, 0x80, 0xFF, 0x0C, 0x1C))
        case 5:
            part[at : at + 5] = b"\xff\xff\xff\xff\x0f"
        case 6:
            part[at : at + 8] = part[other : other + 8]
        case _:
            del part[at : at + rng.randint(1, 400)]
