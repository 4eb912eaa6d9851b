"""A result for people: item beside document, and the result in SQL."""
