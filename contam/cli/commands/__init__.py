"""One module for each command of `contam`."""
