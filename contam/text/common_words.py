"""List common words, which carry little information about a text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COMMON = """
a about above after again against all almost along already also although always am among an and
another any are around as at away back be became because become been before began behind being
below between both but by came can cannot come could did didn do does doesn doing don done down
during each either else enough even ever every few find first following for from further gave get
gets give given go goes going gone good got had has have having he her here herself him himself his
how however i if in into is isn it its itself just keep kind know last least less let like ll long
look made make makes making many may me might mine more most much must my myself near need never new
next no nor not nothing now of off often on once one only or other others our out over own part per
put quite rather re s said same say see seem seen set several shall she should show since so some
something still such t take taken than that the their them themselves then there these they thing
things this those though through thus time to together too took toward two under until up upon us
use used using ve very was way we well went were what when where whether which while who whom whose
why will with within without would yet you your yours yourself
answer below calculate choose compute correct describe determine each equal equals evaluate example
explain false find function given how if input let list many much number option options output
problem question return returns select show simplify solution solve statement string suppose sum
true value values write
und der die das ist nicht ein eine mit von zu den auf für im dem des als auch es an werden aus er
hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber
vor zur bis mehr durch man sein wurde
de la que el en y los se del las un por con no una su para es al lo como más o pero sus le ya este
et les des une est pas pour dans ce il qui ne sur plus par je avec tout faire son au aux mais ou
leur
и в не на я быть он с что а по это она этот к но они мы весь который из у свой то за от так о же
все бы для мочь до или если как при был была было были
的 一 是 在 不 了 有 和 人 这 中 大 为 上 个 国 我 以 要 他 时 来 用 们 生 到 作 地 于 出 就 分 对
成 会 可 主 发 年 动 同
下 列 关 说 法 正 确 错 误 项 哪 能 最 以 下 述 如 果 则 得 出 结 论 所 与 其 及 或 者 者 等 之 由
应 当 此 该 被 将 使 并
の に は を た が で て と し れ さ る い も な す か
"""

_ANNOUNCE = """
answer answers ans correct solution key gold label target response result output respuesta antwort
réponse risposta ответ 答案 答 案 正确 解
"""

#: Weights, 1 for any other token: of a word that is in every text, of a lone ASCII
#: letter or digit, of two of them, and of a character of a script written without spaces.
COMMON_WEIGHT = 0.3
SHORT_WEIGHT = 0.2
PAIR_WEIGHT = 0.5
SINGLE_WEIGHT = 0.5


def _hashes(words: str) -> NDArray[np.uint64]:
    from contam.text.tokenizer import tokenize_bytes

    found = np.unique(tokenize_bytes(words.encode()).hashes)
    found.setflags(write=False)
    return found


@cache
def common_words() -> NDArray[np.uint64]:
    """Sorted token hashes of the common words."""
    return _hashes(_COMMON)


def announcing_texts() -> tuple[str, ...]:
    """The words that introduce an answer, in small letters and with a capital."""
    words = _ANNOUNCE.split()
    return tuple(dict.fromkeys([*words, *(word.title() for word in words)]))


@cache
def announcing_words() -> NDArray[np.uint64]:
    """Sorted token hashes of words that introduce an answer ("Answer: ...")."""
    return _hashes(_ANNOUNCE)
