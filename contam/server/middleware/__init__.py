"""Layers around every request: bodies, keys, limits, headers."""
