"""Twin of the 64-bit arithmetic and of the classes of bytes: one number, one byte at a time."""

MASK = 2**64 - 1


def mix_chunk(state: int, chunk: int) -> int:
    mixed = (state ^ chunk) * 0xD6E8FEB86659FD93 & MASK
    return mixed ^ (mixed >> 32)


def finish_hash(state: int) -> int:
    mixed = state * 0xFF51AFD7ED558CCD & MASK
    mixed ^= mixed >> 29
    return mixed or 1


def byte_classes(byte: int) -> set[str]:
    """What a byte of UTF-8 is to a reader of words; nothing where it only parts them."""
    if byte >= 0x80 or chr(byte) in "\\<&%[":
        return {"other"}
    if chr(byte).isalnum():
        return {"word", "filler"} if chr(byte) in "uU" else {"word"}
    if chr(byte) in "\t\n\v\f\r ":
        return {"blank"}
    return {
        {
            "-": "hyphen",
            ":": "colon",
            "(": "bracket",
            "]": "closed",
            "#": "twice",
            "@": "twice",
        }.get(chr(byte), "")
    }


def code_points(data: bytes) -> int:
    return len(data.decode("utf-8"))
