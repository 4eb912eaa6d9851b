"""The policies, one family per module; `policies.policy` finds them.

A module that has `SPECS` defines policies: it also has `build`, and where it needs them `PRESETS`
(by the name of each, what it changes), `OPTIONAL` (true where an extra must be installed) and
`check_changes` (refuses changes that do not go without others).
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
