"""Twin of the 64-bit arithmetic and of the byte folding: one number, one byte at a time."""

MASK = 2**64 - 1


def mix_chunk(state: int, chunk: int) -> int:
    mixed = (state ^ chunk) * 0xD6E8FEB86659FD93 & MASK
    return mixed ^ (mixed >> 32)


def finish_hash(state: int) -> int:
    mixed = state * 0xFF51AFD7ED558CCD & MASK
    mixed ^= mixed >> 29
    return mixed or 1


def trailing_zeros(value: int) -> int:
    digits = f"{value:064b}"
    return 64 - len(digits.rstrip("0"))


def fold_byte(byte: int) -> int:
    """Lower-case letters and digits stay, all else becomes a marker."""
    if byte >= 0x80:
        return 0x80
    char = chr(byte)
    if char.isalnum():
        return ord(char.lower())
    if char in "\\<&%":
        return 1
    return 2 if char == "-" else 0


def code_points(data: bytes) -> int:
    return len(data.decode("utf-8"))
