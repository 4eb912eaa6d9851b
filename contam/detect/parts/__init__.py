"""Divide a search into parts, each named by a digest of all that decides it."""
