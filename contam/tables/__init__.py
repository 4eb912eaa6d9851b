"""Read and write Parquet and Arrow: the only package that imports pyarrow."""
