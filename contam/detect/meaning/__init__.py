"""Find rephrased items: rare words that come together, then word vectors, numbers and rivals."""
