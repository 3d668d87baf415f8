"""Configuration of headquarters (TOML). An error is one line with the key and the reason."""

import os
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

import common.settings
from common.files import read_secret
from common.language import tr
from common.language.system import reason
from common.settings import Port, Section, SettingsError
from common.wire.nats_pull import NatsOptions
from headquarters.core.nats_accounts import NatsIssuer
from headquarters.intake.joining import JoinTerms
from headquarters.notifiers import Findings
from headquarters.store.database import BadUrl, parse_url

DEFAULT = Path("/etc/mcfd-hq/hq.toml")


class HqServer(Section, frozen=True):
    """Port 0 selects a free port. With a certificate HAProxy terminates TLS; without one headquarters belongs behind a
    web server that has one."""

    host: str = "127.0.0.1"
    port: Port = 8490
    tls_cert: Path | None = None
    tls_key: Path | None = None


class HqStorage(Section, frozen=True):
    """`register_copy` is the file with boxes, keys and people for the case that the database is lost."""

    url: str = "sqlite:////var/lib/mcfd-hq/hq.sqlite3"
    register_copy: Path | None = None


class Nats(NatsOptions, frozen=True):
    """`issuer_file` is the output of `mcfd-hq nats issuer`, for credentials of joining boxes and for revocations."""

    issuer_file: Path | None = None


class BoxesJoining(Section, frozen=True):
    """Answer to joining boxes. `url` is their address of this headquarters, `https://…`; `nats_url` that of the NATS
    servers if it is not `nats.url`; `tls_ca` the private authority (PEM) of both certificates."""

    url: str = ""
    nats_url: str = ""
    tls_ca: Path | None = None


class HqReports(Section, frozen=True):
    timezone: str = "Africa/Ouagadougou"
    language: Literal["fr", "en"] = "fr"


class HqSettings(Section, frozen=True):
    server: HqServer = HqServer()
    storage: HqStorage = HqStorage()
    nats: Nats | None = None
    boxes: BoxesJoining = BoxesJoining()
    findings: Findings = Findings()
    reports: HqReports = HqReports()

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.reports.timezone)


def load(path: Path) -> HqSettings:
    """Raises SettingsError for invalid or inconsistent settings."""
    settings = common.settings.load(path, HqSettings)
    try:
        _ = settings.zone
    except (ZoneInfoNotFoundError, ValueError):
        zone = f'"{settings.reports.timezone}"'
        raise SettingsError(path, "reports.timezone", tr("{value} is not a known time zone", value=zone)) from None
    for one, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if getattr(settings.server, one) and not getattr(settings.server, other):
            raise SettingsError(path, f"server.{one}", tr("goes with {other}, which is missing", other=other))
    try:
        parse_url(settings.storage.url)
    except BadUrl as error:
        raise SettingsError(path, "storage.url", error) from None
    if (url := settings.boxes.url) and not url.lower().startswith(("https://", "http://")):
        raise SettingsError(path, "boxes.url", tr("{value} is not an address, as https://hq.example", value=f'"{url}"'))
    return settings


def register_copy(settings: HqSettings) -> Path | None:
    """The configured path; by default in systemd's STATE_DIRECTORY, else beside the SQLite file; None if neither
    exists."""
    storage = settings.storage
    if storage.register_copy is not None:
        return storage.register_copy
    if state := os.environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(state) / "register.json"
    file = storage.url.removeprefix("sqlite:///")
    return Path(file).with_suffix(".register.json") if file != storage.url else None


def join_terms(settings: HqSettings) -> JoinTerms:
    """Raises SettingsError if the issuer file is unreadable."""
    nats, boxes = settings.nats, settings.boxes
    issuer = None
    if nats is not None and nats.issuer_file is not None:
        fault = None
        try:
            issuer = msgspec.json.decode(read_secret(nats.issuer_file), type=NatsIssuer)
        except OSError as error:
            fault = tr("cannot be read: {why}", why=reason(error))
        except msgspec.MsgspecError:
            fault = tr("is not what `mcfd-hq nats issuer` writes")
        if fault is not None:
            raise SettingsError("nats.issuer_file", str(nats.issuer_file), fault)
    servers = boxes.nats_url or (nats.url if nats is not None else "")
    certificate = settings.server.tls_cert
    return JoinTerms(url=boxes.url, servers=servers, authority=boxes.tls_ca, certificate=certificate, issuer=issuer)
