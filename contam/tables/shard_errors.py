"""Open shards for Arrow, and turn any reader's error into one that names the shard."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from contam.errors import ContamError, Plain, Remedy, ShardError
from contam.files.listed import opened
from contam.files.single import refuse_irregular

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def shard_errors(path: str) -> Iterator[None]:
    """Raise `ShardError` for any failure to open, decode or understand the file at `path`."""
    try:
        refuse_irregular(Path(path))
        yield
    except ContamError:
        raise
    except FileNotFoundError as error:
        raise ShardError(
            "{shard}: the file is gone", shard=path, remedy=Remedy.FILE_EXISTED_WHEN_LISTED
        ) from error
    except PermissionError as error:
        raise ShardError(
            "{shard}: no permission to read it", shard=path,
            remedy=Remedy.CHECK_OWNER_AND_MODE_OF_FILE,
        ) from error  # fmt: skip
    except (pa.ArrowException, OSError, ValueError, EOFError, OverflowError, KeyError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ShardError(
            "{shard}: cannot be read: {}", Plain(reason[:300]), shard=path,
            remedy=Remedy.COPY_MAYBE_CORRUPT,
        ) from error  # fmt: skip


@contextmanager
def arrow_file(path: str) -> Iterator[pa.OSFile]:
    """Open a file for Arrow, and prove that it stays as listed: see `contam.files.listed`.

    Arrow opens what we hold open, so that both are one file even if another takes its path. It
    can take a descriptor itself, or give its own, only from pyarrow 25.
    """
    with opened(path) as file, pa.OSFile(f"/dev/fd/{file.fileno()}") as source:
        yield source
