"""Check what an index file says against itself and against the corpus."""
