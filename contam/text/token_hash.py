"""The frozen 64-bit token hash, in plain Python, for anything that is not a hot loop."""

from __future__ import annotations

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_SEED = 0x9E37_79B9_7F4A_7C15
_STEP = 0xD6E8_FEB8_6659_FD93
_LAST = 0xFF51_AFD7_ED55_8CCD


def token_hash(token: bytes) -> int:
    """Hash of a token's folded UTF-8 bytes: 1 .. 2**64 - 1, never 0.

    Eight bytes at a time, little endian, the last chunk padded with zero bytes. Part of the
    normaliser's version: a change makes every index and every frozen vector void.
    """
    mixed = _SEED
    for at in range(0, len(token), 8):
        chunk = int.from_bytes(token[at : at + 8], "little")
        mixed = ((mixed ^ chunk) * _STEP) & _MASK
        mixed ^= mixed >> 32
    mixed = (mixed * _LAST) & _MASK
    mixed ^= mixed >> 29
    return mixed or 1
