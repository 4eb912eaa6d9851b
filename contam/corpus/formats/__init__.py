"""Corpus formats, one file each; `registry` lists them."""
