"""Match items against documents, and turn evidence into verdicts."""
