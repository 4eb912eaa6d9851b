"""An index over corpus shards that outlives a run: built once, asked by any benchmark."""
