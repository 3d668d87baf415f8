"""What the types cannot say: values that must fit each other, and files that must be readable."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from daemon import texts
from daemon.core.clock import zone
from daemon.settings.model import LABELS, Reports, Section, Server, Settings, Upstream, Webhook
from daemon.settings.secrets import read_secret, secret_path

NIM = re.compile(r"[A-Z]{2}[0-9]{8}(-[0-9]+)?")

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
    urls: dict[str, str] = {}
    for index, webhook in enumerate(settings.webhook):
        at = f"webhook[{index}]"
        check_webhook(webhook, at, fault)
        if other := _taken(urls, webhook.url, at):
            raise fault(f"{at}.url", texts.SAME_URL(value=quoted(webhook.url), other=other))


def check_server(server: Server, fault: Fault) -> None:
    if server.tls_cert and not server.tls_key:
        raise fault("server.tls_cert", texts.NEEDS(other="tls_key"))
    if server.tls_key and not server.tls_cert:
        raise fault("server.tls_key", texts.NEEDS(other="tls_cert"))
    if server.tls and server.tls_cert:
        raise fault("server.tls", texts.ONE_ONLY(other="tls_cert"))
    if server.tls_folder and not server.tls:
        raise fault("server.tls_folder", texts.ONLY_WITH(other='tls = "internal"'))
    if not (is_loopback(server.host) or server.tls or server.tls_cert or server.allow_plain_lan):
        raise fault("server.host", texts.BEYOND_LOOPBACK(value=quoted(server.host)))


def check_reports(reports: Reports, fault: Fault) -> None:
    try:
        zone(reports.timezone)
    except (KeyError, ValueError, OSError):
        raise fault("reports.timezone", texts.BAD_ZONE(value=quoted(reports.timezone))) from None
    for letter in reports.payment_labels:
        if letter not in LABELS["fr"]:
            raise fault(f"reports.payment_labels.{letter}", texts.BAD_METHOD(value=quoted(letter)))


def check_machines(settings: Settings, fault: Fault) -> None:
    if not settings.machine:
        raise fault("machine", texts.NO_MACHINE)
    nims: dict[str, str] = {}
    ports: dict[str, str] = {}
    for index, machine in enumerate(settings.machine):
        at = f"machine[{index}]"
        if not NIM.fullmatch(machine.nim):
            raise fault(f"{at}.nim", texts.BAD_NIM(value=quoted(machine.nim)))
        if other := _taken(nims, machine.nim.partition("-")[0], at):
            raise fault(f"{at}.nim", texts.SAME_NIM(value=quoted(machine.nim), other=other))
        if machine.enabled and (other := _taken(ports, os.path.realpath(machine.port), at)):
            raise fault(f"{at}.port", texts.SAME_PORT(value=quoted(machine.port), other=other))


def check_upstream(upstream: Upstream, fault: Fault) -> None:
    if upstream.kind == "nats":
        for server in upstream.url.split(","):
            check_url(server.strip(), ("nats", "tls"), "upstream.url", fault)
    else:
        url = check_url(upstream.url, ("https", "http"), "upstream.url", fault)
        _check_plain(url, "upstream.url", fault, allowed=upstream.allow_plain_http)
        if not (upstream.secret_file or upstream.key_file):
            raise fault("upstream.secret_file", texts.ONE_OF(one="secret_file", other="key_file"))
    others = ("credentials_file",) if upstream.kind == "https" else ("secret_file", "key_file")
    for name in others:
        if getattr(upstream, name):
            kind = "nats" if upstream.kind == "https" else "https"
            raise fault(f"upstream.{name}", texts.ONLY_WITH(other=f'kind = "{kind}"'))


def check_webhook(webhook: Webhook, at: str, fault: Fault) -> None:
    url = check_url(webhook.url, ("https", "http"), f"{at}.url", fault)
    _check_plain(url, f"{at}.url", fault, allowed=webhook.allow_plain_http)


def check_url(url: str, schemes: tuple[str, ...], at: str, fault: Fault) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise fault(at, texts.BAD_URL(value=quoted(url), expected=f"{schemes[0]}://…")) from None
    if parts.username or parts.password:
        raise fault(at, texts.PASSWORD_IN_URL)
    if not usable:
        raise fault(at, texts.BAD_URL(value=quoted(url), expected=f"{schemes[0]}://…"))
    return parts


def check_files(settings: Settings, environ: Mapping[str, str], fault: Fault) -> None:
    if settings.server.tls and not os.access(settings.tls_home / AUTHORITY, os.R_OK):
        raise fault("server.tls", texts.NO_AUTHORITY(folder=settings.tls_home))
    for at, path in _files(settings):
        try:
            content = read_secret(path, environ)
        except OSError as error:
            told = texts.NOT_READABLE(path=secret_path(path, environ), why=texts.reason(error))
            raise fault(at, told) from None
        if not content:
            raise fault(at, texts.EMPTY_FILE(path=secret_path(path, environ)))


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
        raise fault(at, texts.PLAIN_HTTP(value=quoted(url.geturl())))


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    named: list[tuple[str, Section, tuple[str, ...]]] = [("server", settings.server, ("tls_cert", "tls_key"))]
    if settings.upstream:
        named.append(("upstream", settings.upstream, ("secret_file", "key_file", "credentials_file", "tls_ca")))
    named += [(f"webhook[{index}]", webhook, ("secret_file",)) for index, webhook in enumerate(settings.webhook)]
    for at, table, names in named:
        for name in names:
            if path := getattr(table, name):
                yield f"{at}.{name}", path
