"""Items against an index: candidates, reading back, and guarantees."""
