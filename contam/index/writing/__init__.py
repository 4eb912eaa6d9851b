"""Write an index: read shards, sample documents, write and merge segments."""
