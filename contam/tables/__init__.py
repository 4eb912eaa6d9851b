"""Read and write Parquet and Arrow: the only package that imports pyarrow."""

from contam import extras

if extras.is_own_process():
    import pyarrow as pa

    with extras.hidden("pandas"):
        # At the first value that it converts, pyarrow looks once whether pandas is there: loading
        # it takes 0.25 s, longer than reading a small corpus.
        pa.array([0])
