"""The MinHash part of an index: permutations, windows, and signatures of texts."""
