"""Open shards for Arrow, and name what cannot be read."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from contam.errors import COPY_AGAIN, ContamError, Plain, ShardError
from contam.files.addresses import is_address
from contam.files.listed import not_answered, opened, opened_object
from contam.files.single import refuse_irregular
from contam.files.stores import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def shard_errors(path: str) -> Iterator[None]:
    """Raise `ShardError` for any failure to open, decode or understand the file at `path`."""
    try:
        if not is_address(path):
            refuse_irregular(Path(path))
        yield
    except ContamError:
        raise
    except FileNotFoundError as error:
        raise ShardError(
            "{shard}: the file is gone", shard=path, hint="it existed when the shards were listed"
        ) from error
    except PermissionError as error:
        raise ShardError(
            "{shard}: no permission to read it", shard=path,
            hint="check its owner and mode",
        ) from error  # fmt: skip
    except (pa.ArrowException, OSError, ValueError, EOFError, OverflowError, KeyError) as error:
        if isinstance(error, OSError) and is_address(path):
            from contam.tables.object_stores import told

            failure = told(error)
            if isinstance(failure, StoreError):
                raise not_answered(path, failure) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ShardError(
            "{shard}: cannot be read: {}", Plain(reason[:300]), shard=path, hint=COPY_AGAIN
        ) from error


@contextmanager
def arrow_file(path: str) -> Iterator[pa.NativeFile]:
    """Open a file for Arrow, and prove that it stays as listed: see `contam.files.listed`.

    Arrow opens what we hold open, so that both are one file even if another takes its path. It
    can take a descriptor itself, or give its own, only from pyarrow 25.
    """
    if is_address(path):
        with opened_object(path) as found:
            yield pa.PythonFile(found, mode="r")
        return
    with opened(path) as file, pa.OSFile(f"/dev/fd/{file.fileno()}") as source:
        yield source
