"""Twin of what an index takes of documents: the key of every w-th gram, one by one."""

DOCUMENT_BITS = 23


def keys(gram_hashes: list[int], stride: int, key_bits: int) -> list[int]:
    """The keys of every stride-th gram; `gram_hashes` are those of all grams of a document."""
    return [value // 2 ** (64 - key_bits) for value in gram_hashes[::stride]]


def entries(gram_hashes: list[int], stride: int, key_bits: int, document: int) -> list[int]:
    """The same with the document's number below each."""
    return [key * 2**DOCUMENT_BITS + document for key in keys(gram_hashes, stride, key_bits)]
