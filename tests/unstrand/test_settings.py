from __future__ import annotations

from pathlib import Path

import pytest

from unstrand.errors import SettingsError
from unstrand.settings import load_settings


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "unstrand.toml"
        path.write_text(text)
        return path

    return write


def test_the_command_line_wins_over_the_environment_over_the_file_over_the_default(
    config, monkeypatch
):
    monkeypatch.delenv("UNSTRAND_PORT", raising=False)
    assert load_settings().port == 8501
    path = config("port = 1111")
    assert load_settings(path).port == 1111
    monkeypatch.setenv("UNSTRAND_PORT", "2222")
    assert load_settings(path).port == 2222
    assert load_settings(path, port=3333).port == 3333


def test_what_is_not_given_is_not_set(monkeypatch):
    monkeypatch.setenv("UNSTRAND_DB", "/data/site.duckdb")
    assert load_settings(db=None).db == Path("/data/site.duckdb")


def test_a_home_folder_is_understood_in_a_file(config, monkeypatch):
    monkeypatch.delenv("UNSTRAND_DB", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert load_settings(config('db = "~/site.duckdb"')).db == Path("/home/me/site.duckdb")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "prot: no such setting; there are .*port"),
        ("port = 99999", "port: Input should be less than or equal to 65535"),
        ('log_level = "loud"', "log_level: Input should be 'debug'"),
        ("port = ", "is no TOML file"),
    ],
)
def test_a_wrong_setting_is_refused_with_file_and_key(config, text, message):
    path = config(text)
    with pytest.raises(SettingsError, match=message) as refused:
        load_settings(path)
    assert str(path) in str(refused.value)


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("UNSTRAND_PORT", "many")
    with pytest.raises(SettingsError, match="UNSTRAND_PORT"):
        load_settings()


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load_settings(tmp_path / "none.toml")
