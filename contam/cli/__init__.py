"""The `contam` command: arguments in, one call to the library, text out."""
