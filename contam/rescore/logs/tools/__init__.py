"""One reader for each tool that writes logs of evaluations."""
