"""Turn text into tokens: frozen character tables, name lists and tokenizers."""
