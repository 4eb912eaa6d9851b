"""Keep compiled kernels on disk, in folders named by what they were compiled from.

Numba does not notice when a helper in another file changes, and it reuses a cached binary compiled
without bounds checks when they are asked for.  So each module of kernels has a cache folder named
by a digest of its source and of every module of kernels it imports, the Numba version and the
bounds flag.  The name holds no path and no time: checkouts and installations share what they
compile, and an edit compiles only the modules that depend on it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core import caching

if TYPE_CHECKING:
    from collections.abc import Callable

#: True when every access to an array is checked (NUMBA_BOUNDSCHECK=1).
BOUNDSCHECK: bool = os.environ.get("NUMBA_BOUNDSCHECK", "0") == "1"

_HERE = Path(__file__).parent
#: Kernels import each other in this form alone; a test holds them to it.
_IMPORT = re.compile(rb"^ *from contam\.kernels\.(\w+) import", re.MULTILINE)


@functools.cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


@functools.cache
def modules_behind(path: Path) -> tuple[Path, ...]:
    """The files whose source decides what the kernels of a file compile to, itself included."""
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            found = _IMPORT.findall(_source(file))
            waiting.extend(_HERE / f"{module.decode()}.py" for module in found)
    return tuple(sorted(seen, key=lambda file: file.stem))


@functools.cache
def cache_folder(path: Path) -> Path:
    """The folder that keeps what the kernels of a file compile to."""
    digest = hashlib.sha256()
    for file in modules_behind(path):
        source = _source(file)
        digest.update(f"{file.stem} {len(source)}\n".encode())
        digest.update(source)
    digest.update(f"{numba.__version__} bounds={BOUNDSCHECK}".encode())
    return CACHE_FOLDER / f"{path.stem}-{digest.hexdigest()[:16]}"


def _own_root() -> Path | None:
    """Where this user's compiled kernels are kept between runs; None without a home."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "contam"
    try:
        return Path.home() / ".cache" / "contam"
    except RuntimeError:
        return None


def _is_safe(folder: Path, *, named: bool) -> bool:
    """Whether only people this user trusts can write to the folder: what lies there is executed.

    named  by the user, who then trusts its owner and its group: everybody else may not write
    """
    status = folder.lstat()
    if named:
        return not (status.st_mode & 0o002 or folder.is_symlink())
    return not (status.st_uid != os.getuid() or status.st_mode & 0o022 or folder.is_symlink())


def _is_writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


#: Why something that was compiled could not be kept; then nothing more of this process is.
unsaved: list[str] = []


def _choose_cache_folder() -> tuple[Path, bool]:
    """The folder for compiled kernels, and whether it can be read only, as in an image."""
    name = os.environ.get("CONTAM_CACHE_DIR")
    root = Path(name) if name else _own_root()
    if root is not None:
        folder = root / "kernels"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o777 if name else 0o700)
        with contextlib.suppress(OSError):
            # Whoever can write to the folder above can put another one in its place.
            if _is_safe(folder, named=bool(name)) and (not name or _is_safe(root, named=True)):
                if _is_writable(folder):
                    return folder, False
                if any(folder.glob("*.compiled")):
                    return folder, True
        unsaved.append(f"{folder} cannot be written, or everybody may write to it")
    # A home that cannot be written must not stop a scan: compile into a folder of our own.
    folder = Path(tempfile.mkdtemp(prefix="contam-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, False


CACHE_FOLDER, IS_READ_ONLY = _choose_cache_folder()


#: Numba's cache has no types, and no public class to extend.
_caching: Any = caching


class _ContentLocator(_caching._CacheLocator):  # type: ignore[misc]  # noqa: SLF001 - untyped, private
    """Tells Numba where a kernel is kept: by what its module and its imports say."""

    def __init__(self, path: Path) -> None:
        self._folder = cache_folder(path)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return "0"  # a module has one function of a name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _ContentLocator:
        del py_func
        return cls(Path(py_file))


class ContentCacheImpl(_caching.CompileResultCacheImpl):  # type: ignore[misc]  # untyped base
    _locator_classes = (_ContentLocator,)


class ContentCache(_caching.FunctionCache):  # type: ignore[misc]  # untyped base
    _impl_class = ContentCacheImpl

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, where that can be written; `unsaved` says why it cannot."""
        if IS_READ_ONLY or unsaved:
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            unsaved.append(f"{CACHE_FOLDER}: {error.strerror or error}")
