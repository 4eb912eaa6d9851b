"""Review a sample of items by hand, and estimate rates for all items."""
