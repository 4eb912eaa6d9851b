"""A persistent index over corpus shards: built once, queried by any benchmark."""
