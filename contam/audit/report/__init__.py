"""The report of an audit: its facts, as HTML and as Markdown."""
