"""Estimate how many flags are chance: decoys, false discovery rates and q-values."""
