"""The report of an audit, as facts, HTML and Markdown."""
