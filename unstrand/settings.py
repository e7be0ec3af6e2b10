"""Settings of this installation: command line over environment over TOML file over defaults."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from unstrand.errors import SettingsError

DEFAULT_DB = Path("~/.local/share/unstrand/unstrand.duckdb")
ENV_PREFIX = "UNSTRAND_"


class Settings(BaseSettings):
    """What an operator may set; each key is also ``UNSTRAND_<KEY>`` in the environment.

    ``server``: the address of a service that answers instead of the file. ``goals`` and
    ``delivery``: what matters here and who gets the weekly report, in TOML. ``agent_secret``: a
    file with the secret from which the tokens of node agents are made; without it none are asked.
    ``slurm_cluster``: the service asks this host's Slurm every ``slurm_every_s`` seconds and keeps
    what it says under this name; without it only `unstrand import` brings jobs in.
    ``local_cluster``: to which cluster the GPUs of the service's own machine belong; by default to
    ``slurm_cluster``, else to one of their own, ``local``.
    """

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    db: Path = DEFAULT_DB
    server: str | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8501, ge=0, le=65535)
    goals: Path | None = None
    delivery: Path | None = None
    agent_secret: Path | None = None
    local_cluster: str | None = Field(default=None, min_length=1)
    slurm_cluster: str | None = Field(default=None, min_length=1)
    slurm_every_s: int = Field(default=300, ge=30)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("db")
    @classmethod
    def _expanded(cls, value: Path) -> Path:
        return value.expanduser()


def load_settings(config: Path | None = None, **given: Any) -> Settings:
    """Settings with ``given`` (None = not given) over everything else.

    Raises SettingsError naming the file or variable, the key and what it may be.
    """
    from_file = {} if config is None else _read(config)
    try:
        return _over(from_file)(**{k: v for k, v in given.items() if v is not None})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        where = str(config) if key in from_file else f"{ENV_PREFIX}{key.upper()} or --{key}"
        known = ", ".join(sorted(Settings.model_fields))
        reason = f"no such setting; there are {known}" if _unknown(first) else first["msg"]
        raise SettingsError(f"{where}: {key}: {reason}") from error


def _over(from_file: dict[str, Any]) -> type[Settings]:
    """Settings that fall back to the values of a file."""

    class Layered(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, from_file)

    return Layered


def _unknown(problem: Any) -> bool:
    return bool(problem["type"] == "extra_forbidden")


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(
            f"cannot read {config}: {error.strerror}; name it with --config"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config} is no TOML file: {error}") from error
