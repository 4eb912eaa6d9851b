"""Twin of a segment: every array file of indexes/FORMAT.md, byte for byte, from tokens."""

import struct
import zlib

from tests.twins.grams import gram_hash

BLOCK = 65536
MARK = 256


def npy(code: str, shape: tuple[int, ...], data: bytes) -> bytes:
    shown = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shown}, }}"
    head = b"\x93NUMPY\x01\x00\x76\x00" + text.encode().ljust(117) + b"\n"
    assert len(head) == 128
    return head + data


def crc(file: bytes) -> bytes:
    blocks = [file[i : i + BLOCK] for i in range(0, len(file), BLOCK)]
    return b"".join(struct.pack("<I", zlib.crc32(block)) for block in blocks)


def bits(values: list[int], width: int) -> str:
    """Numbers of so many bits, each lowest first, as a text of 0 and 1."""
    return "".join(f"{value:0{width}b}"[::-1] for value in values) if width else ""


def packed(row: str) -> bytes:
    """A row of bits in words of 64, and one word more."""
    n = -(-len(row) // 64) + 1
    return int(row[::-1] or "0", 2).to_bytes(8 * n, "little")


def marks(row: str) -> list[int]:
    ones = [at for at, bit in enumerate(row) if bit == "1"]
    return ones[::MARK]


def table(
    name: str, pairs: set[tuple[int, int]], key_bits: int, n_documents: int, cap: int
) -> dict[str, bytes]:
    """The files of a table of (key, document) pairs."""
    lists: dict[int, list[int]] = {}
    for key, document in sorted(pairs):
        lists.setdefault(key, []).append(document)
    capped = [key for key, documents in lists.items() if len(documents) > cap]
    kept = {key: documents[:cap] for key, documents in lists.items()}
    n_keys, n_pairs = len(kept), sum(map(len, kept.values()))
    head_bits = min(key_bits, max(0, n_keys.bit_length() - 1))
    rest, width = key_bits - head_bits, max(1, (n_documents - 1).bit_length())
    heads = [key >> rest for key in kept]
    row = "".join("0" * heads.count(head) + "1" for head in range(1 << head_bits))
    ends = "".join("0" * (len(documents) - 1) + "1" for documents in kept.values())
    words = {
        "heads": row,
        "rests": bits([key & ((1 << rest) - 1) for key in kept], rest),
        "ends": ends,
        "documents": bits([one for documents in kept.values() for one in documents], width),
    }
    numbers = {
        "sizes": [n_pairs, n_keys, rest, width],
        "head_marks": marks(row),
        "end_marks": marks(ends),
    }
    files = {}
    for key, text in words.items():
        data = packed(text)
        files[f"{name}_{key}.npy"] = npy("<u8", (len(data) // 8,), data)
    for key, values in numbers.items():
        data = struct.pack(f"<{len(values)}q", *values)
        files[f"{name}_{key}.npy"] = npy("<i8", (len(values),), data)
    data = struct.pack(f"<{len(capped)}Q", *capped)
    return {**files, f"{name}_capped.npy": npy("<u8", (len(capped),), data)}


def gram_pairs(
    documents: list[list[int]], sizes: tuple[int, int, int], base: int, spread: int
) -> set[tuple[int, int]]:
    """(key, document) of every gram that is taken; sizes  (k, w, bits of a key)."""
    k, w, key_bits = sizes
    return {
        (gram_hash(tokens[at : at + k], base, spread) >> (64 - key_bits), number)
        for number, tokens in enumerate(documents)
        for at in range(0, len(tokens) - k + 1, w)
    }


def files(
    documents: list[list[int]],
    texts: list[bytes],
    sizes: tuple[int, int, int, int],
    base: int,
    spread: int,
    letters: list[list[int]] | None = None,
) -> dict[str, bytes]:
    """The array files of a segment; sizes  (k, w, bits of a key, cap); letters  keys of each document."""
    *taken, key_bits, cap = sizes
    n = len(documents)
    torn = {(key, d) for d, keys in enumerate(letters or []) for key in keys}
    return {
        **table("grams", gram_pairs(documents, (*taken, key_bits), base, spread), key_bits, n, cap),
        **table("letters", torn, key_bits, n, n),
        "doc_tokens.npy": npy("<u4", (n,), struct.pack(f"<{n}I", *map(len, documents))),
        "doc_crc.npy": npy("<u4", (n,), struct.pack(f"<{n}I", *map(zlib.crc32, texts))),
    }
