"""Results of a re-scoring for evaluators, as pictures and Markdown."""
