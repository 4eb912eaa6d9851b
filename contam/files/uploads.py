"""Write to stores: an object is there whole or not at all, and a folder ends with its mark.

Stores take files one by one, and cannot rename a folder. So the object named `last`, which lists
the digests of the others, is removed before they are written and is written after them: where it
is missing, or they are not what it lists, there is no finished result.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol, cast

from contam.errors import ASK_STORE_LATER, OutputError, Place, Plain, Public, UsageError
from contam.files.addresses import Address, checked, is_address
from contam.files.stores import RefusedError, Store, StoreError, lacks_bucket, size_of, store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

#: The stores that are written to; others are only read.
_WRITABLE = ("s3", "gs", "az")
_NAMED = 3
_PIECE = 8 << 20


class WritableStore(Store, Protocol):
    """A store that takes objects, too, one by one."""

    def write(self, address: Address, source: Path | bytes) -> None:
        """Write an object, in place of an earlier one: whole or not at all. Raises OSError."""

    def remove(self, address: Address) -> None:
        """Remove an object if it is there. Raises OSError."""


def place(given: str | Path) -> Path:
    """A path, or the address that a text or path means, which has the names of a path.

    Raises UsageError for an address that is not read: see `checked`.
    """
    return cast("Path", checked(given)) if is_address(given) else Path(given)


def lies_in(out: str | Path, home: str | Path) -> bool:
    """Whether a path or address is a folder of its kind, or lies below it."""
    inner, outer = place(out), place(home)
    if isinstance(inner, Address) or isinstance(outer, Address):
        return type(inner) is type(outer) and inner.is_relative_to(outer)
    try:
        return outer.is_dir() and inner.resolve().is_relative_to(outer.resolve())
    except OSError:
        return False  # whoever opens it will say why


def writable(given: object) -> Address:
    """The address that is written to.

    Raises UsageError for a store that is only read, OutputError where there is no bucket.
    """
    address = checked(given)
    if address.scheme not in _WRITABLE:
        raise UsageError(
            "{}:// is only read, and cannot be written to", Public(address.scheme),
            hint="name a folder of this machine, or one in s3://, gs:// or az://",
        )  # fmt: skip
    with store_errors(address):
        if lacks_bucket(address):
            raise FileNotFoundError(errno.ENOENT, "there is no such bucket")
    return address


def write_files(
    folder: Address,
    made: Mapping[str, Path | bytes],
    replaced: Collection[str] = (),
    *,
    last: str = "",
) -> dict[str, str]:
    """Write files into a folder, and remove those that they replace.

    made      the content of each, or a file that has it, by the names below the folder
    replaced  names of files in the folder that go
    last      is removed before all others and written after them

    Returns the stamps of the objects. Raises OutputError.
    """
    old = [name for name in replaced if name not in made or name == last]
    if last in old:
        _remove(folder / last)
        old.remove(last)
    stamps = {name: _upload(folder / name, made[name]) for name in made if name != last}
    for name in old:
        _remove(folder / name)
    if last:
        stamps[last] = _upload(folder / last, made[last])
    return stamps


def upload(address: Address, source: Path | bytes) -> None:
    """Write the content of a file, or bytes, as an object. Raises OutputError."""
    write_files(address.parent, {address.name: source})


def _upload(address: Address, source: Path | bytes) -> str:
    """Write an object, and return its stamp."""
    store = cast("WritableStore", store_of(address))
    size = size_of(source)
    with store_errors(address):
        try:
            store.write(address, source)
        except OSError:
            # Arrow may have made an object of what it had sent.
            with contextlib.suppress(OSError):
                if store.state(address).size != size:
                    store.remove(address)
            raise
        state = store.state(address)
        if state.size != size:
            raise StoreError(f"it has {state.size:,} of {size:,} bytes")
        return state.stamp


def fetch(address: PurePath, target: Path) -> None:
    """Copy an object, in one state of it, to a file. Raises OSError."""
    found = checked(address)
    with store_of(found).open(found) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _PIECE)
    if store_of(found).state(found) != source.state:
        raise StoreError("it was replaced while it was read")


def _remove(address: Address) -> None:
    with store_errors(address):
        cast("WritableStore", store_of(address)).remove(address)


def names_below(folder: Address) -> list[str]:
    """The names of all objects below a folder, relative to it and in order. Raises OutputError."""
    with store_errors(folder):
        try:
            found = sorted(store_of(folder).below(folder))
        except FileNotFoundError:
            return []
    return ["/".join(one.relative_to(folder).parts) for one in found]


@contextlib.contextmanager
def store_errors(address: Address) -> Iterator[None]:
    """Turn a failure of a store into an OutputError that names the address."""
    try:
        yield
    except OSError as error:
        hint = ASK_STORE_LATER
        if isinstance(error, RefusedError):
            hint = (
                "check HF_TOKEN and the name of the data set"
                if address.scheme == "hf"
                else "check the credentials, and what they allow"
            )
        elif isinstance(error, FileNotFoundError):
            hint = "check that the file is there and may be read"
        elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
            hint = "free some space or choose another disk"
        raise OutputError(
            "{}: {}", Place(address), Plain(error.strerror or error), hint=hint
        ) from error


@contextlib.contextmanager
def publishing_objects(
    out: object, *, names: Sequence[str], last: str, overwrite: bool, earlier: Sequence[str]
) -> Iterator[Path]:
    """As `contam.files.publish.publishing`, for an address: the draft is on this machine.

    Raises OutputError, also when another run has written there meanwhile; UsageError for a store
    that is only read.
    """
    folder = writable(out)

    def before() -> list[str]:
        return _check_free(folder, (*names, *earlier), last, overwrite=overwrite)

    before()
    with tempfile.TemporaryDirectory(prefix="contam-draft-") as home:
        draft = Path(home)
        yield draft
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        made = {"/".join(path.relative_to(draft).parts): path for path in files}
        made[last] = made.pop(last)
        # Asked again: another run may have finished here since.
        stamps = write_files(folder, made, before(), last=last)
        for name, stamp in stamps.items():
            if _stamp(folder / name) != stamp:
                raise OutputError(
                    "{}: another run wrote there at the same time", Place(folder / name),
                    hint="choose another folder",
                )  # fmt: skip


def _check_free(folder: Address, names: Sequence[str], last: str, *, overwrite: bool) -> list[str]:
    """The objects of an earlier result. Raises OutputError for others, or where it may not go."""
    present = names_below(folder)
    foreign = [name for name in present if name.partition("/")[0] not in names]
    if foreign:
        raise OutputError(
            "{} holds files that are not a contam result: {}", Place(folder),
            Place(", ".join(foreign[:_NAMED]) + (" ..." if len(foreign) > _NAMED else "")),
            hint="choose a new or empty folder",
        )  # fmt: skip
    if present and not overwrite:
        raise OutputError(
            "{} already holds {} result", Place(folder),
            Public("a finished" if last in present else "part of a"),
            hint="choose another folder, or replace it with --overwrite",
        )  # fmt: skip
    return present


def _stamp(address: Address) -> str:
    with store_errors(address):
        return store_of(address).state(address).stamp
