"""Match items against an index: candidates, documents read back, and guarantees."""
