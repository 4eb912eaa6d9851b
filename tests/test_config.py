"""Settings: a flag beats the environment, that the file, that the default; each wrong one is named."""

from __future__ import annotations

import dataclasses

import pytest

from contam.config import Settings, described_settings, load_settings
from contam.errors import ConfigError


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "contam.toml"
        path.write_text(text)
        return path

    return write


def test_a_flag_beats_the_environment_that_the_file_and_that_the_default(file):
    path = file('[serve]\nport = 1\nhost = "file"\nmax_items = 3\n[scan]\nworkers = 9\n')
    environ = {"CONTAM_PORT": "2", "CONTAM_HOST": "environ", "CONTAM_NOTHING": "x"}
    found = load_settings({"port": 4, "host": None}, environ=environ, file=path)
    assert (found.port, found.host, found.max_items) == (4, "environ", 3)
    assert found.deadline_s == Settings().deadline_s


def test_lists_numbers_and_switches_are_read_from_the_environment():
    environ = {"CONTAM_INDEX": "a,b", "CONTAM_DEADLINE_S": "2.5", "CONTAM_METRICS": "false"}
    found = load_settings(environ=environ)
    assert (found.index, found.deadline_s, found.metrics) == (("a", "b"), 2.5, False)


def test_a_secret_comes_from_the_environment_or_from_a_file_that_it_names(tmp_path, file):
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    assert load_settings(environ={"CONTAM_ADMIN_KEY_FILE": str(secret)}).admin_key == (
        "0123456789abcdef"
    )
    assert load_settings(environ={"CONTAM_ADMIN_KEY": "x"}).admin_key == "x"
    with pytest.raises(ConfigError, match="is a secret"):
        load_settings(environ={}, file=file('[serve]\nadmin_key = "x"\n'))
    with pytest.raises(ConfigError, match="cannot read the secret"):
        load_settings(environ={"CONTAM_ADMIN_KEY_FILE": str(tmp_path / "nothing")})


@pytest.mark.parametrize(
    ("flags", "environ", "text", "named"),
    [
        ({"port": -1}, {}, "", "--port: port: should be greater than or equal to 0"),
        ({"port": 65_536}, {}, "", "--port: port: should be less than"),
        ({}, {"CONTAM_PORT": "x"}, "", "CONTAM_PORT: port: should be a valid integer$"),
        ({}, {"CONTAM_DEADLINE_S": "inf"}, "", "CONTAM_DEADLINE_S: deadline_s: should be"),
        ({}, {}, "serve = 3\n", "serve is no table"),
        ({}, {"CONTAM_MAX_ITEMS": "0"}, "", "CONTAM_MAX_ITEMS: max_items"),
        ({}, {"CONTAM_DEADLINE_S": "soon"}, "", "CONTAM_DEADLINE_S: deadline_s"),
        ({}, {}, "[serve]\nport = 'x'\n", "port"),
        ({}, {}, "[serve]\nprot = 1\n", "has no setting 'prot'"),
        ({}, {}, "[serve\n", "cannot read"),
    ],
)
def test_a_wrong_setting_is_named_with_where_it_came_from(file, flags, environ, text, named):
    with pytest.raises(ConfigError, match=named) as refused:
        load_settings(flags, environ=environ, file=file(text))
    assert refused.value.hint


def test_a_value_that_is_refused_is_not_shown():
    with pytest.raises(ConfigError) as refused:
        load_settings(environ={"CONTAM_PORT": "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_every_setting_is_described_once_and_has_a_flag_unless_it_is_a_secret():
    import typer

    from contam.cli.main import app

    described = described_settings()
    assert [setting.name for setting in described] == [
        field.name for field in dataclasses.fields(Settings)
    ]
    flags = {
        name
        for param in typer.main.get_command(app).commands["serve"].params
        for name in param.opts
    }
    for setting in described:
        assert (setting.flag in flags) is not setting.secret
        assert setting.help.endswith(".")
