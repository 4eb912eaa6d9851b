"""Report failures as problem documents that quote nothing of the request."""
