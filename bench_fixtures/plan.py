"""Which item goes where: every id is one document, ids joined by `+` share a document.

Items that are not named here are absent from the corpus.
"""

from __future__ import annotations

PLAN = {
    "verbatim": "brook-001 brook-001 brook-001 brook-008 brook-020 brook-026 brook-027 "
    "lantern-021 lantern-029 lantern-005 lantern-034 tinker/1 tinker/16 tinker/37",
    "upper_case": "brook-039 lantern-045",
    "question_answer": "brook-002 brook-010 brook-028 brook-049 lantern-022 lantern-037 "
    "tinker/5 tinker/14 tinker/21",
    "quiz_layout": "lantern-001 lantern-010+lantern-020+lantern-023 lantern-017 lantern-026 "
    "lantern-036 lantern-047",
    "jsonl_dump": "brook-009+brook-012 lantern-009 lantern-032 tinker/3 tinker/29",
    "edited": "brook-004 brook-017 brook-019 brook-030 lantern-042 lantern-044 tinker/8 tinker/19",
    "numbers_changed": "brook-013 brook-036 brook-046",
    "renamed": "tinker/20 tinker/28",
    "truncated": "brook-023 brook-025 brook-034 tinker/38",
    "split": "brook-040 brook-048 tinker/32",
    "markup": "brook-014 brook-033 lantern-039 tinker/7",
    "escapes": "brook-016 brook-024 lantern-031 lantern-033 tinker/22",
    "full_width": "brook-029 lantern-043",
    "zero_width": "brook-032 lantern-041",
    "look_alikes": "brook-037 lantern-030",
    "hyphen_breaks": "brook-021 brook-022 lantern-028",
    "passage_only": "lantern-003 lantern-006",
    "answer_only": "brook-035 brook-043 lantern-027 lantern-038 tinker/26 tinker/31",
    "generic_stem": "lantern-013 lantern-015 lantern-018",
}

# Other questions cut from the same cloth as an item that is itself absent: not contamination.
SAME_TEMPLATE = {
    "brook-006": "Ines walks to the swimming lake through the beech wood, 2,300 metres, and takes "
    "the bus home. In summer she goes on 6 days of the week. How many kilometres does she walk?",
    "brook-042": "Konrad reads two chapters on weekdays and five on Saturdays, and on Sundays he "
    "rests his eyes. His almanac has 75 chapters. How many weeks will he need?",
    "brook-045": "A gardener plants leeks in a rectangle, 9 rows of 24. Rabbits eat the two rows "
    "next to the hedge. How many leeks are left to pull in autumn?",
    "lantern-046": "A copper kettle turns pink where it is scrubbed because: 1. the scourer is red "
    "2. bare metal comes to light 3. tea dyes it 4. the flame is hot.",
    "tinker/18": "def longest_dry_spell(rain):\n"
    '    """Number of days in the longest dry spell of a list of daily rainfall."""\n'
    "    longest = spell = 0\n    for amount in rain:\n"
    "        spell = 0 if amount else spell + 1\n"
    "        longest = max(longest, spell)\n    return longest\n",
}
