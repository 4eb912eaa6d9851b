"""Labels joined with what a scan said: recall, kinds, spans and false flags, as plain records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
from quality_aims import LEAST_WORDS, QUESTION_GONE
from survival import question_survival

from contam.errors import ContamError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from labelled_scan import LabelledScan

Record = dict[str, Any]


class Measures:
    """The joins of one scan with the labels of its pack."""

    def __init__(self, data: Path, scan: LabelledScan) -> None:
        """Load the labels of `data` and the tables of `scan` into a database in memory."""
        self._db = duckdb.connect()
        for name in ("verdicts", "evidence", "pairs", "items"):
            self._db.register(name, getattr(scan, name))
        self._db.register("survival", question_survival(data))
        self._db.execute(_LABELS, {"file": str(data / "labels.parquet")})
        self._db.execute(_ITEM_TRUTH, {"file": str(data / "item_truth.parquet")})
        self._db.execute(
            "create macro long(n_words) as n_words >= $n".replace("$n", str(LEAST_WORDS))
        )
        self._db.execute(_FLAGGED)
        self._db.execute(_LABELLED.replace("$gone", f"'{QUESTION_GONE}'"))
        for statement in (_TOUCHED, _POSITIVES, _NEGATIVES, _ABSENT, _UNLISTED):
            self._db.execute(statement)

    def recall(self, policy: str) -> list[Record]:
        """Per class and tier: labels, found, kinds and spans, for long and short items."""
        return self._rows(_RECALL, policy)

    def recall_by_place(self, policy: str) -> list[Record]:
        """Verbatim plants found by where in the document they stand."""
        return self._rows(_RECALL_BY_PLACE, policy)

    def misses(self, policy: str) -> list[Record]:
        """Labels that were not found, and why: ids and scores, no text."""
        return self._rows(_MISSES, policy)

    def false_flags(self, policy: str) -> list[Record]:
        """Per class of pairs that do not contaminate: matches, and what they were called."""
        return self._rows(_FALSE_FLAGS, policy)

    def false_flag_examples(self, policy: str) -> list[Record]:
        """Such matches that were called contaminated or suspect."""
        return self._rows(_FALSE_FLAG_EXAMPLES, policy)

    def absent(self, policy: str) -> Record:
        """Items of which no document holds anything: how many, and how many were flagged."""
        return self._rows(_ABSENT_COUNTS, policy)[0]

    def absent_examples(self, policy: str) -> list[Record]:
        """Such items that were flagged."""
        return self._rows(_ABSENT_EXAMPLES, policy)

    def by_status(self, policy: str) -> list[Record]:
        """Verdicts per status of the item over the whole pack."""
        return self._rows(_BY_STATUS, policy)

    def unlisted(self, policy: str) -> list[Record]:
        """Matches no label speaks of, that were called contaminated or suspect."""
        return self._rows(_UNLISTED_COUNTS, policy)

    def unlisted_by_benchmark(self, policy: str) -> list[Record]:
        """The same, counted by benchmark of the item."""
        return self._rows(_UNLISTED_BY_BENCHMARK, policy)

    def unlisted_examples(self, policy: str) -> list[Record]:
        """The highest of them."""
        return self._rows(_UNLISTED_EXAMPLES, policy)

    def answers(self, policy: str) -> dict[int, tuple[str, bool]]:
        """The class of every label of a long item, and whether it was found, by its number."""
        return {row["label_id"]: (row["class"], row["found"]) for row in self._rows(_FOUND, policy)}

    def absent_items(self, policy: str) -> dict[str, bool]:
        """Of each item of which no document holds anything, whether it was flagged."""
        return {row["item_id"]: row["flag"] for row in self._rows(_ABSENT_ITEMS, policy)}

    def _rows(self, query: str, policy: str) -> list[Record]:
        found = self._db.execute(query, {"policy": policy})
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@dataclass(frozen=True)
class Judging:
    """The measures of one scan, of these policies."""

    measures: Measures
    policies: tuple[str, ...]
    definitions: dict[str, Any]

    def judged(self) -> dict[str, Record]:
        """All measures of each policy."""
        return {
            policy: {
                "fingerprint": self.definitions[policy]["fingerprint"],
                "recall": self.measures.recall(policy),
                "by_place": self.measures.recall_by_place(policy),
                "false_flags": self.measures.false_flags(policy),
                "absent": self.measures.absent(policy),
                "by_status": self.measures.by_status(policy),
                "unlisted": self.measures.unlisted(policy),
                "unlisted_by_benchmark": self.measures.unlisted_by_benchmark(policy),
                "examples": {
                    "missed": self.measures.misses(policy),
                    "false_flags": self.measures.false_flag_examples(policy),
                    "absent": self.measures.absent_examples(policy),
                    "unlisted": self.measures.unlisted_examples(policy),
                },
            }
            for policy in self.policies
        }


def judging(data: Path, policies: Sequence[str], scan: LabelledScan) -> Judging:
    """What measures each policy. Raises ContamError when some of the corpus was not read."""
    if not scan.run["coverage"]["complete"]:
        raise ContamError(
            "the labelled corpus could not be read whole",
            hint="`contam scan` on it names the shards",
        )
    definitions = scan.run["parameters"]["policy_definitions"]
    return Judging(Measures(data, scan), tuple(policies), definitions)


def judged(data: Path, policies: Sequence[str], scan: LabelledScan) -> dict[str, Record]:
    """All measures of each policy. Raises ContamError when some of the corpus was not read."""
    return judging(data, policies, scan).judged()


def either(first: Judging, policy: str, second: Judging, other: str) -> Record:
    """Recall and flagged absent items of two policies of two scans together."""
    found, absent = first.measures.answers(policy), first.measures.absent_items(policy)
    more, besides = second.measures.answers(other), second.measures.absent_items(other)
    classes: dict[str, list[bool]] = {}
    for label, (name, is_found) in found.items():
        classes.setdefault(name, []).append(is_found or more[label][1])
    return {
        "recall": [
            {"class": name, "n": len(one), "found": sum(one)} for name, one in classes.items()
        ],
        "false_flags": [],
        "absent": {
            "n": len(absent),
            "flagged": sum(flag or besides[item] for item, flag in absent.items()),
        },
    }


_LABELS = "create table labels as from read_parquet($file)"
_ITEM_TRUTH = "create table item_truth as from read_parquet($file)"
_FLAGGED = "create macro flagged(label) as label in ('contaminated', 'suspect')"

# Found by search and found as a by-catch of a plant are classes of their own, and so are plants
# that hold less than half of the question. Grey labels have no sure truth.
_LABELLED = """
create table labelled as
select labels.*, case when survives < 0.5 then transformation || $gone
    when transformation <> 'found' then transformation
    when contaminated then origin || ':found' else origin || ':passage_only' end as class
from labels left join survival using (label_id) where tier <> 'grey'
"""

# What evidence the run gave for the document of each label.
_TOUCHED = """
create table touched as
select l.label_id,
    bool_or(e.part = 'question') as question,
    bool_or(e.document_start < l.char_end and e.document_end > l.char_start
            or coalesce(e.document_start < l.char_end2 and e.document_end > l.char_start2, false))
        as on_span
from labelled l join evidence e on e.item_id = l.item_id and e.document_id = l.doc_id
group by all
"""

_POSITIVES = """
create table positives as
select v.policy, l.label_id, l.item_id, l.doc_id, l.class, l.tier, l.variant, l.position,
    l.item_words, long(l.item_words) as is_long, v.label, v.score, p.score as pair_score,
    p.label as pair_label, p.kind, p.exposure, p.longest_question,
    flagged(v.label) as is_flagged,
    coalesce(t.question or l.expected = 'partial', false) as is_named,
    is_flagged and is_named as found,
    coalesce(list_contains(l.accept, p.kind), false) as kind_ok,
    l.char_start is not null as spanned, coalesce(t.on_span, false) as on_span
from labelled l
join verdicts v using (item_id)
left join touched t using (label_id)
left join pairs p on p.item_id = l.item_id and p.document_id = l.doc_id and p.policy = v.policy
where l.contaminated and l.doc_id is not null
"""

_NEGATIVES = """
create table negatives as
select v.policy, l.label_id, l.item_id, l.doc_id, l.class, l.tier, l.item_words,
    long(l.item_words) as is_long, v.label, v.score, p.score as pair_score,
    coalesce(p.label, 'clean') as pair_label, p.kind, p.exposure, p.longest_question
from labelled l
join verdicts v using (item_id)
left join pairs p on p.item_id = l.item_id and p.document_id = l.doc_id and p.policy = v.policy
where not l.contaminated and l.doc_id is not null
"""

_ABSENT = """
create table absent as
select a.item_words, v.* from
    (select distinct item_id, item_words from labelled where origin = 'negative') a
join verdicts v using (item_id)
"""

_UNLISTED = """
create table unlisted as
select p.*, i.n_words, i.benchmark, long(i.n_words) as is_long
from pairs p join items i using (item_id)
anti join labels l on l.item_id = p.item_id and l.doc_id = p.document_id
where flagged(p.label)
"""

_RECALL = """
select class, tier,
    count(*) filter (is_long) as n, count(*) filter (is_long and found) as found,
    count(*) filter (not is_long) as n_short,
    count(*) filter (not is_long and found) as found_short,
    count(*) filter (is_long and found and label = 'contaminated') as contaminated,
    count(*) filter (found and kind_ok) as kind_ok,
    count(*) filter (found and kind = 'exact') as kind_exact,
    count(*) filter (found and kind = 'near') as kind_near,
    count(*) filter (found and kind = 'partial') as kind_partial,
    count(*) filter (found and exposure = 'question+answer') as with_answer,
    count(*) filter (found and spanned) as spanned,
    count(*) filter (found and spanned and on_span) as on_span
from positives where policy = $policy group by class, tier order by class, tier
"""

_FOUND = "select label_id, class, found from positives where policy = $policy and is_long"
_ABSENT_ITEMS = "select item_id, flagged(label) as flag from absent where policy = $policy"

_RECALL_BY_PLACE = """
select position as place, count(*) as n, count(*) filter (found) as found
from positives
where policy = $policy and is_long and class in
    ('verbatim_q', 'verbatim_qa', 'quiz', 'dataset_dump', 'repeat_verbatim', 'case', 'punct')
group by position order by position
"""

_MISSES = """
select class, tier, label_id, item_id, doc_id, variant, item_words, label,
    round(score, 3) as score, round(pair_score, 3) as pair_score, pair_label, longest_question,
    case when pair_score is null then 'no pair' when not is_flagged then 'below the threshold'
         else 'flagged without evidence of the question' end as why
from positives where policy = $policy and not found
qualify row_number() over (partition by class, is_long order by label_id) <= 30
order by class, label_id
"""

_FALSE_FLAGS = """
select class, tier, count(*) as n, count(*) filter (pair_label = 'contaminated') as contaminated,
    count(*) filter (flagged(pair_label)) as flagged,
    count(*) filter (is_long) as n_long,
    count(*) filter (is_long and pair_label = 'contaminated') as contaminated_long,
    count(*) filter (is_long and flagged(pair_label)) as flagged_long
from negatives where policy = $policy group by class, tier order by class, tier
"""

_FALSE_FLAG_EXAMPLES = """
select class, tier, label_id, item_id, doc_id, item_words, pair_label,
    round(pair_score, 3) as pair_score, kind, exposure, longest_question
from negatives where policy = $policy and flagged(pair_label)
qualify row_number() over (partition by class order by pair_score desc, label_id) <= 30
order by class, pair_score desc, label_id
"""

_ABSENT_COUNTS = """
select count(*) as n, count(*) filter (flagged(label)) as flagged,
    count(*) filter (label = 'contaminated') as contaminated,
    count(*) filter (label = 'not_checkable') as not_checkable
from absent where policy = $policy
"""

_ABSENT_EXAMPLES = """
select item_id, item_words, label, round(score, 3) as score, best_document_id as doc_id
from absent where policy = $policy and flagged(label) order by score desc, item_id limit 30
"""

_BY_STATUS = """
select t.status, count(*) as n, count(*) filter (v.label = 'contaminated') as contaminated,
    count(*) filter (v.label = 'suspect') as suspect, count(*) filter (v.label = 'clean') as clean,
    count(*) filter (v.label = 'not_checkable') as not_checkable,
    count(*) filter (long(i.n_words) and v.label = 'contaminated') as contaminated_long,
    count(*) filter (long(i.n_words) and v.label = 'suspect') as suspect_long,
    count(*) filter (long(i.n_words)) as n_long
from item_truth t join verdicts v using (item_id) join items i using (item_id)
where v.policy = $policy group by t.status order by t.status
"""

_UNLISTED_COUNTS = """
select label, count(*) as n, count(*) filter (is_long) as n_long,
    count(distinct item_id) as items, count(distinct item_id) filter (is_long) as items_long
from unlisted where policy = $policy group by label order by label
"""

_UNLISTED_BY_BENCHMARK = """
select benchmark, count(*) filter (label = 'contaminated') as contaminated,
    count(*) filter (label = 'suspect') as suspect, count(distinct item_id) as items
from unlisted where policy = $policy group by benchmark order by contaminated desc, benchmark
"""

_UNLISTED_EXAMPLES = """
select item_id, document_id as doc_id, n_words, label, round(score, 3) as score,
    longest_question, kind
from unlisted where policy = $policy and is_long
order by score desc, item_id, document_id limit 30
"""
