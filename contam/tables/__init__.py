"""Parquet and Arrow files: the only package that imports pyarrow."""
