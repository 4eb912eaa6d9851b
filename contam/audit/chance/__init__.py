"""How many flags are chance: decoys, false discovery, and q-values."""
