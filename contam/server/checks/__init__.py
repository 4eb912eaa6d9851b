"""Check items: parse, admit, query the indexes, answer."""
