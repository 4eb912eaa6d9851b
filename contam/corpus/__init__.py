"""Pretraining text: which shards there are, how they are cut into work, and their documents."""
