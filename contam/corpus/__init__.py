"""Read pretraining corpora: shards, chunks and documents."""
