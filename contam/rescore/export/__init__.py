"""Export a re-scoring for evaluators, as pictures and as Markdown."""
