"""Request and answer schemas, each with an example."""
