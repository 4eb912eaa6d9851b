"""The `contam` command: parse arguments, call the library, print."""
