"""The configuration, TOML. What is wrong in it is one line that names the key and why."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
DEFAULT = Path("/etc/mcfd-hq/hq.toml")


class BadSettings(Exception):
    """One line: which key, and why."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Server(Section, frozen=True):
    """`port` 0 takes a free one. Without a certificate it belongs behind a web server that has one."""

    host: str = "127.0.0.1"
    port: Port = 8490
    tls_cert: Path | None = None
    tls_key: Path | None = None


class Storage(Section, frozen=True):
    """`register_copy` is where boxes, keys and people are kept beside the database, for the day that it is lost."""

    url: str = "sqlite:////var/lib/mcfd-hq/hq.sqlite3"
    register_copy: Path | None = None


class Nats(Section, frozen=True):
    """`url` may be several, with commas. `durable` is the consumer that all instances share."""

    url: str
    credentials_file: Path | None = None
    tls_ca: Path | None = None
    durable: str = "headquarters"


class Hook(Section, frozen=True):
    """A webhook that hears of findings, signed with the `whsec_…` in `secret_file`."""

    url: str
    secret_file: Path


class Mail(Section, frozen=True):
    """Through an SMTP server that takes mail from here; `starttls` when it offers it."""

    to: tuple[str, ...]
    sender: str
    host: str = "localhost"
    port: Port = 25
    starttls: bool = True
    user: str = ""
    password_file: Path | None = None


class Findings(Section, frozen=True):
    """`tell_after`: a finding that solves itself sooner is nobody's news. `silent_after`: a shop that
    has not closed in time is late when it has not been heard of for that long. `newest_version`: what boxes should have; empty, the
    version of headquarters itself."""

    tell_after: Seconds = 120
    silent_after: Seconds = 3600
    look_every: Annotated[float, msgspec.Meta(gt=0)] = 60
    newest_version: str = ""
    webhook: tuple[Hook, ...] = ()
    mail: Mail | None = None


class Reports(Section, frozen=True):
    timezone: str = "Africa/Ouagadougou"
    language: Literal["fr", "en"] = "fr"


class Settings(Section, frozen=True):
    server: Server = Server()
    storage: Storage = Storage()
    nats: Nats | None = None
    findings: Findings = Findings()
    reports: Reports = Reports()

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.reports.timezone)


def load(path: Path) -> Settings:
    """BadSettings when it cannot be read, or anything in it is wrong or unknown."""
    try:
        found = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadSettings(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from None
    try:
        settings = msgspec.convert(found, Settings, dec_hook=_path)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$.")
        raise BadSettings(f"{path}: {at.rstrip('`') + ': ' if at else ''}{reason}") from None
    return _checked(path, settings)


def _path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(kind)


def _checked(path: Path, settings: Settings) -> Settings:
    try:
        ZoneInfo(settings.reports.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise BadSettings(f"{path}: reports.timezone: {settings.reports.timezone} is no time zone") from None
    server = settings.server
    if (server.tls_cert is None) != (server.tls_key is None):
        raise BadSettings(f"{path}: server.tls_cert and server.tls_key go together")
    return settings


def register_copy(settings: Settings) -> Path | None:
    """As set; else in the service's own directory (systemd's STATE_DIRECTORY), else beside the SQLite file."""
    storage = settings.storage
    if storage.register_copy is not None:
        return storage.register_copy
    if state := os.environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(state) / "register.json"
    file = storage.url.removeprefix("sqlite:///")
    return Path(file).with_suffix(".register.json") if file != storage.url else None
