"""Failures as problem documents, in words that quote no request."""
