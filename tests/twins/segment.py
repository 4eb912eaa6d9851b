"""Twin of a segment: every array file of indexes/FORMAT.md, byte for byte, from tokens."""

import bisect
import struct
import zlib

from tests.twins.grams import gram_hash

BLOCK = 65536


def npy(code: str, shape: tuple[int, ...], data: bytes) -> bytes:
    shown = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shown}, }}"
    head = b"\x93NUMPY\x01\x00\x76\x00" + text.encode().ljust(117) + b"\n"
    assert len(head) == 128
    return head + data


def crc(file: bytes) -> bytes:
    blocks = [file[i : i + BLOCK] for i in range(0, len(file), BLOCK)]
    return b"".join(struct.pack("<I", zlib.crc32(block)) for block in blocks)


def context(tokens: list[int], at: int, k: int) -> int:
    value = 0
    for i in range(3):
        left, right = at - 1 - i, at + k + i
        if left >= 0:
            value |= (tokens[left] >> 60) << (4 * i)
        if right < len(tokens):
            value |= (tokens[right] >> 60) << (12 + 4 * i)
    return value


def entries(
    documents: list[list[int]], k: int, w: int, base: int, spread: int
) -> list[tuple[int, int, int]]:
    """(key, ordinal, context) of every sampled gram, sorted."""
    found: list[tuple[int, int, int]] = []
    for tokens in documents:
        for at in range(0, len(tokens) - k + 1, w):
            key = gram_hash(tokens[at : at + k], base, spread) >> 24
            found.append((key, len(found), context(tokens, at, k)))
    return sorted(found)


def files(
    documents: list[list[int]],
    texts: list[bytes],
    k: int,
    w: int,
    base: int,
    spread: int,
    letters: list[list[int]] | None = None,
) -> dict[str, bytes]:
    """The array files of a segment in which no gram is capped; letters  keys of each document."""
    torn = sorted({key << 32 | d for d, keys in enumerate(letters or []) for key in keys})
    rows = entries(documents, k, w, base, spread)
    keys = [key for key, _, _ in rows]
    starts = [bisect.bisect_left(keys, bucket << 24) for bucket in range(65537)]
    postings = b"".join(
        struct.pack("<Q", key & 0xFFFFFF | ctx << 24)[:6] + struct.pack("<I", ordinal)
        for key, ordinal, ctx in rows
    )
    firsts = [0]
    for tokens in documents:
        firsts.append(firsts[-1] + len(range(0, len(tokens) - k + 1, w)))
    n = len(documents)
    return {
        "starts.npy": npy("<i8", (65537,), struct.pack("<65537q", *starts)),
        "postings.npy": npy("<u2", (len(rows), 5), postings),
        "doc_entries.npy": npy("<u4", (n + 1,), struct.pack(f"<{n + 1}I", *firsts)),
        "doc_tokens.npy": npy("<u4", (n,), struct.pack(f"<{n}I", *map(len, documents))),
        "doc_crc.npy": npy("<u4", (n,), struct.pack(f"<{n}I", *map(zlib.crc32, texts))),
        "capped_key.npy": npy("<u8", (0,), b""),
        "capped_count.npy": npy("<i8", (0,), b""),
        "letters.npy": npy("<u8", (len(torn),), struct.pack(f"<{len(torn)}Q", *torn)),
    }
