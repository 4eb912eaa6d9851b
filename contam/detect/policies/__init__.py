"""The policies, one family per module; `policies.policy` finds them.

A module that has `SPECS` defines policies: it also has `build`, and `PRESETS` if there are some.
"""

from typing import Final

#: Modules in the order in which their policies are listed; others follow by name.
LISTED_FIRST: Final = (
    "contam_default",
    "any_run",
    "shares",
    "substrings",
    "best_document",
    "decon",
)
