"""Match items against documents: token views, gram tables and evidence."""
