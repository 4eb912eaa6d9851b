"""Check the files of an index against each other and against the corpus."""
