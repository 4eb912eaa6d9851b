"""The text of token ids, token by token."""

import itertools

BREAK, MISSING = -1, -2


def texts(ids, offsets, tokens, *, strips):
    """Texts of documents, and where in all of them each token begins; None for an unknown id.

    tokens  the bytes of each id, or BREAK or MISSING
    """
    if any(one >= len(tokens) or tokens[one] == MISSING for one in ids):
        return None
    made, where, done = [], [], 0
    for begin, end in itertools.pairwise(offsets):
        text, spoken, fresh = b"", 0, True
        for one in ids[begin:end]:
            where.append(done + len(text))
            if tokens[one] == BREAK:
                text += b"\n" if text else b""
                continue
            cut = strips and fresh and tokens[one][:1] == b" "
            fresh = fresh and not tokens[one]
            text += tokens[one][1:] if cut else tokens[one]
            spoken = len(text)
        made.append(text[:spoken])
        done += spoken
    return made, [*where, done]
