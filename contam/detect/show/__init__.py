"""Show results: items beside documents, and SQL."""
