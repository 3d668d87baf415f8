"""What the types cannot say: values that must fit each other, and files that must be readable."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from daemon.core.clock import zone
from daemon.language import tr
from daemon.language.system import reason
from daemon.settings.model import Place, Reports, Server, Settings, Upstream, Webhook
from daemon.settings.origin import origin_of
from daemon.settings.paper import LABELS, Printer
from daemon.settings.secrets import read_secret, secret_path
from daemon.settings.section import Section

NIM = re.compile(r"[A-Z]{2}[0-9]{8}(-[0-9]+)?")

NETWORK = ("tcp", "rfc2217")
AUTHORITY = "ca.pem"
"""The certificate of the internal authority, in its folder."""

Fault = Callable[[str, object], Exception]
"""From the path of a key and the reason to the error to raise."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_values(settings: Settings, fault: Fault) -> None:
    check_server(settings.server, fault)
    check_reports(settings.reports, fault)
    check_machines(settings, fault)
    if settings.upstream:
        check_upstream(settings.upstream, fault)
    if settings.backup and bool(settings.backup.recipients) == bool(settings.backup.passphrase_file):
        raise fault("backup", tr("needs either recipients or passphrase_file"))
    if settings.printer:
        check_printer(settings.printer, fault)
    urls: dict[str, str] = {}
    lanes = {"upstream": "[upstream]"}
    for index, webhook in enumerate(settings.webhook):
        at = f"webhook[{index}]"
        check_webhook(webhook, at, fault)
        if other := _taken(urls, webhook.url, at):
            raise fault(
                f"{at}.url", tr("{value} is already the address of {other}", value=quoted(webhook.url), other=other)
            )
        if other := _taken(lanes, webhook.lane, at):
            raise fault(
                f"{at}.name", tr("{value} is already the name of {other}", value=quoted(webhook.lane), other=other)
            )


def check_server(server: Server, fault: Fault) -> None:
    check_origins(server, fault)
    if server.tls_cert and not server.tls_key:
        raise fault("server.tls_cert", tr("goes with {other}, which is missing", other="tls_key"))
    if server.tls_key and not server.tls_cert:
        raise fault("server.tls_key", tr("goes with {other}, which is missing", other="tls_cert"))
    if server.tls and server.tls_cert:
        raise fault("server.tls", tr("excludes {other}: one or the other", other="tls_cert"))
    if server.tls_folder and not server.tls:
        raise fault("server.tls_folder", tr("means something only with {other}", other='tls = "internal"'))
    if not (is_loopback(server.host) or server.tls or server.tls_cert or server.allow_plain_lan):
        raise fault(
            "server.host",
            tr(
                '{value} can be reached from the network: set tls = "internal", or tls_cert and tls_key, or '
                "allow_plain_lan = true (API keys would travel in clear)",
                value=quoted(server.host),
            ),
        )


def check_origins(server: Server, fault: Fault) -> None:
    for value in server.allowed_origins:
        if (origin := origin_of(value)) != value:
            right = quoted(origin or "https://till.example")
            raise fault(
                "server.allowed_origins",
                tr("{value} is not an origin as browsers write it; write {right}", value=quoted(value), right=right)
                if origin
                else tr(
                    "{value} is not an origin as browsers write it, such as {right}", value=quoted(value), right=right
                ),
            )


def check_zone(key: str, name: str, fault: Fault) -> None:
    try:
        zone(name)
    except (KeyError, ValueError, OSError):
        raise fault(key, tr("{value} is not a known time zone", value=quoted(name))) from None


def check_reports(reports: Reports, fault: Fault) -> None:
    check_zone("reports.timezone", reports.timezone, fault)
    for letter in reports.payment_labels:
        if letter not in LABELS["fr"]:
            raise fault(
                f"reports.payment_labels.{letter}",
                tr("{value} is not a method of payment (E V C M B A)", value=quoted(letter)),
            )


def check_machines(settings: Settings, fault: Fault) -> None:
    if not settings.machine:
        raise fault("machine", tr("no [[machine]] section: nothing to certify with"))
    nims: dict[str, str] = {}
    ports: dict[str, str] = {}
    for index, machine in enumerate(settings.machine):
        at = f"machine[{index}]"
        if not NIM.fullmatch(machine.nim):
            raise fault(
                f"{at}.nim",
                tr(
                    "{value} is not a NIM (two capital letters, eight digits, and maybe - and a counter, as EL02000015-1)",
                    value=quoted(machine.nim),
                ),
            )
        if other := _taken(nims, machine.nim.partition("-")[0], at):
            raise fault(
                f"{at}.nim", tr("{value} is the same machine as {other}", value=quoted(machine.nim), other=other)
            )
        check_zone(f"{at}.timezone", machine.timezone, fault)
        if machine.port.is_network:
            check_line(machine.port, f"{at}.port", fault)
        if machine.enabled and (other := _taken(ports, _line(machine.port), at)):
            raise fault(
                f"{at}.port",
                tr(
                    "{value} is already the port of {other}; two machines cannot share a line",
                    value=quoted(machine.port),
                    other=other,
                ),
            )


def check_line(place: Place, at: str, fault: Fault) -> None:
    """Of the network; a tty may be plugged in later."""
    url = check_url(place, NETWORK, at, fault)
    if url.port is None:
        raise fault(
            at,
            tr(
                "{value} does not say the port number: {expected}",
                value=quoted(place),
                expected=f"{url.scheme}://{url.hostname}:4001",
            ),
        )
    if url.path.strip("/") or url.query or url.fragment:
        raise fault(
            at, tr("{value} is not an address {expected}", value=quoted(place), expected=f"{url.scheme}://host:port")
        )


def check_printer(printer: Printer, fault: Fault) -> None:
    if "://" in printer.address:
        check_url(printer.address, ("tcp",), "printer.address", fault)


def _line(place: Place) -> str:
    """The same for the same line, however it is written."""
    if not place.is_network:
        return os.path.realpath(place)
    url = urlsplit(place)
    return f"{url.hostname}:{url.port}"


def check_upstream(upstream: Upstream, fault: Fault) -> None:
    if upstream.kind == "nats":
        for server in upstream.url.split(","):
            check_url(server.strip(), ("nats", "tls"), "upstream.url", fault)
        if not (upstream.credentials_file or upstream.secret_file or upstream.key_file):
            raise fault(
                "upstream.credentials_file", tr("{one} or {other} is needed", one="credentials_file", other="key_file")
            )
        return
    url = check_url(upstream.url, ("https", "http"), "upstream.url", fault)
    _check_plain(url, "upstream.url", fault, allowed=upstream.allow_plain_http)
    if not (upstream.secret_file or upstream.key_file):
        raise fault("upstream.secret_file", tr("{one} or {other} is needed", one="secret_file", other="key_file"))
    if upstream.credentials_file:
        raise fault("upstream.credentials_file", tr("means something only with {other}", other='kind = "nats"'))


def check_webhook(webhook: Webhook, at: str, fault: Fault) -> None:
    url = check_url(webhook.url, ("https", "http"), f"{at}.url", fault)
    _check_plain(url, f"{at}.url", fault, allowed=webhook.allow_plain_http)


def check_url(url: str, schemes: tuple[str, ...], at: str, fault: Fault) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise fault(
            at, tr("{value} is not an address {expected}", value=quoted(url), expected=f"{schemes[0]}://…")
        ) from None
    if parts.username or parts.password:
        raise fault(at, tr("must not carry a password (it would end up in a log)"))
    if not usable:
        raise fault(at, tr("{value} is not an address {expected}", value=quoted(url), expected=f"{schemes[0]}://…"))
    return parts


def check_files(settings: Settings, environ: Mapping[str, str], fault: Fault) -> None:
    if settings.server.tls and not os.access(settings.tls_home / AUTHORITY, os.R_OK):
        raise fault("server.tls", tr("no authority in {folder} yet: mcfd tls init", folder=settings.tls_home))
    for at, path in _files(settings):
        try:
            content = read_secret(path, environ)
        except OSError as error:
            told = tr("{path} cannot be read: {why}", path=secret_path(path, environ), why=reason(error))
            raise fault(at, told) from None
        if not content:
            raise fault(at, tr("{path} is empty", path=secret_path(path, environ)))


def secret_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Path of the key, and the file named there, of each that only its owner should read."""
    for at, path in _files(settings):
        if not at.endswith(("tls_cert", "tls_ca")):
            yield at, path


def quoted(value: object) -> str:
    return f'"{value}"'


def _taken(seen: dict[str, str], value: str, at: str) -> str:
    """Who has that value already; otherwise it is now taken by `at`."""
    if value in seen:
        return seen[value]
    seen[value] = at
    return ""


def _check_plain(url: SplitResult, at: str, fault: Fault, *, allowed: bool = False) -> None:
    if url.scheme == "http" and not allowed and not is_loopback(url.hostname or ""):
        raise fault(
            at, tr("{value} would send in clear; use https, or allow_plain_http = true", value=quoted(url.geturl()))
        )


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    named: list[tuple[str, Section, tuple[str, ...]]] = [("server", settings.server, ("tls_cert", "tls_key"))]
    if settings.upstream:
        named.append(("upstream", settings.upstream, ("secret_file", "key_file", "credentials_file", "tls_ca")))
    named += [(f"webhook[{index}]", webhook, ("secret_file",)) for index, webhook in enumerate(settings.webhook)]
    for at, table, names in named:
        for name in names:
            if path := getattr(table, name):
                yield f"{at}.{name}", path
