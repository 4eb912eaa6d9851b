"""Settings: a flag beats the environment, that the file, that the default; each wrong one is named."""

import dataclasses

import pytest

from contam.cli.main import main
from contam.config import Settings


@pytest.fixture
def served(monkeypatch):
    """Call `contam serve`: its settings, or its exit code and what it said."""
    started = []
    monkeypatch.setattr("contam.server.app.run", lambda settings, **_: started.append(settings))

    def call(*flags, **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        code = main(["serve", *map(str, flags)])
        return started.pop() if code == 0 else code

    return call


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "contam.toml"
        path.write_text(text)
        return path

    return write


def test_a_flag_beats_the_environment_that_the_file_and_that_the_default(served, file):
    path = file('[serve]\nport = 1\nhost = "file"\nmax_items = 3\n')
    found = served(
        "--port", 4, "--settings", path, CONTAM_PORT="2", CONTAM_HOST="environ", CONTAM_NOTHING="x"
    )
    assert (found.port, found.host, found.max_items) == (4, "environ", 3)
    assert found.deadline_s == Settings().deadline_s


def test_lists_and_numbers_are_read_from_the_environment(served):
    found = served(CONTAM_INDEX="a b", CONTAM_DEADLINE_S="2.5")
    assert (found.index, found.deadline_s) == (("a", "b"), 2.5)


def test_a_secret_comes_from_the_environment_or_from_a_file_that_it_names(
    served, tmp_path, file, capsys
):
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef\n")
    assert served(CONTAM_ADMIN_KEY_FILE=str(path)).admin_key == "0123456789abcdef"
    assert served(CONTAM_ADMIN_KEY="x").admin_key == "x"
    assert served("--settings", file('[serve]\nadmin_key = "hunter2"\n')) == 2
    assert "hunter2" not in capsys.readouterr().err


def test_a_secret_that_cannot_be_read_stops_the_service(served, tmp_path):
    assert served(CONTAM_ADMIN_KEY_FILE=str(tmp_path / "nothing")) == 2


@pytest.mark.parametrize(
    ("flags", "environ", "text", "named"),
    [
        (("--port", -1), {}, "", "--port"),
        (("--port", 65_536), {}, "", "--port"),
        (("--max-items", 1 << 60), {}, "", "--max-items"),
        ((), {"CONTAM_PORT": "x"}, "", "(from CONTAM_PORT)"),
        ((), {"CONTAM_DEADLINE_S": "inf"}, "", "--deadline-s"),
        ((), {"CONTAM_DEADLINE_S": "nan"}, "", "--deadline-s"),
        ((), {"CONTAM_MAX_ITEMS": "0"}, "", "(from CONTAM_MAX_ITEMS)"),
        ((), {}, "serve = 3\n", "'serve'"),
        ((), {}, "[serve]\nport = 'x'\n", "--port"),
        ((), {}, "[serve]\nprot = 1\n", "did you mean port"),
        ((), {}, "[serve]\nport = [1]\n", "port"),
        ((), {}, "[scan]\nworkers = 2\n", "'scan'"),
        ((), {}, "[serve\n", "cannot read"),
        ((), {}, "a = " + "[" * 100_000, "cannot read"),
    ],
)
def test_a_wrong_setting_is_named_with_where_it_came_from(
    served, file, capsys, flags, environ, text, named
):
    assert served(*flags, "--settings", file(text), **environ) == 2
    assert named in capsys.readouterr().err


def test_every_setting_but_the_secret_has_a_flag_that_is_explained():
    import typer

    from contam.cli.main import app

    params = typer.main.get_command(app).commands["serve"].params
    said = {param.opts[0]: param.help for param in params}
    names = {field.name for field in dataclasses.fields(Settings)} - {"admin_key"}
    assert said.keys() == {f"--{name.replace('_', '-')}" for name in names | {"settings"}}
    assert all(said.values())
