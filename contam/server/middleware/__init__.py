"""Middleware around every request: bodies, keys, limits and headers."""
