"""The statistics of a re-scoring: arrays in, figures out."""
