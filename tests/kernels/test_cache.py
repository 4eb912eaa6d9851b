"""Compiled code is reused exactly where the same sources compile to it."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from contam.kernels import _cache
from tests.matrix import sampled

KERNELS = Path(_cache.__file__).parent
MODULES = sorted(path.stem for path in KERNELS.glob("*.py") if path.stem != "__init__")


def imports(module: str) -> set[str]:
    """Every module of kernels that `module` names, as Python's own parser sees it."""
    found = set()
    for node in ast.walk(ast.parse((KERNELS / f"{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("contam.kernels"):
            found.add(str(node.module).removeprefix("contam.kernels").removeprefix("."))
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("contam") for name in node.names), module
    assert "" not in found, f"{module} imports the package, not a module of it"
    return found


def names_behind(module: str, folder: Path = KERNELS) -> set[str]:
    return {path.stem for path in _cache.modules_behind(folder / f"{module}.py")}


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Another checkout of the same kernels, which the decorators look at."""
    folder = Path(shutil.copytree(KERNELS, tmp_path / "kernels"))

    def use(where: Path) -> dict[str, str]:
        monkeypatch.setattr(_cache, "_HERE", where)
        for cached in (_cache._source, _cache.modules_behind, _cache.cache_folder):
            cached.cache_clear()
        return {module: _cache.cache_folder(where / f"{module}.py").name for module in MODULES}

    yield folder, use
    monkeypatch.undo()
    for cached in (_cache._source, _cache.modules_behind, _cache.cache_folder):
        cached.cache_clear()


@pytest.mark.parametrize("module", sampled(8, MODULES))
def test_all_that_a_module_imports_decides_its_folder(module):
    behind = names_behind(module)
    assert module in behind
    for name in behind:
        assert imports(name) <= behind


def test_the_folder_does_not_depend_on_where_the_sources_lie(copy):
    folder, use = copy
    assert use(folder) == use(KERNELS)


@pytest.mark.parametrize("edited", sampled(8, MODULES))
def test_an_edit_moves_the_modules_that_depend_on_it_and_no_other(copy, edited):
    folder, use = copy
    before = use(folder)
    with (folder / f"{edited}.py").open("a") as file:
        file.write("\n# an edit\n")
    after = use(folder)
    moved = {module for module in MODULES if before[module] != after[module]}
    assert moved == {module for module in MODULES if edited in names_behind(module, folder)}
    assert edited in moved
