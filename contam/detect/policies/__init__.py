"""The definitions themselves, one family of them per module; `contam.detect.policy` finds them."""
