"""Text to tokens: the frozen character tables, name lists and what reads them."""
