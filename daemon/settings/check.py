"""Checks beyond types: values that must be consistent, and files that must be readable. Each yields keys and faults."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from common.files import CREDENTIALS, read_secret, secret_path
from common.language import tr
from common.language.system import reason
from common.numbers import parse_integer
from common.settings import named_paths
from common.sockets import is_loopback
from common.wire.instants import now_millis
from common.wire.upstream_kinds import KINDS
from daemon.core.clock import zone
from daemon.core.invoice.number import Series, is_pattern
from daemon.core.invoice.request import SHORT_LENGTH
from daemon.core.machine.state import short_nim
from daemon.owner import as_owner
from daemon.settings.model import Machine, Reports, Server, Settings, Upstream, Webhook
from daemon.settings.paper import LABELS, LETTERS

NIM = re.compile(r"[A-Z]{2}[0-9]{8}(-[0-9]+)?")
ORIGIN = re.compile(
    r"(?!http://.*:80$)(?!https://.*:443$)https?://([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?"
)
"""The form that browsers send: any other would never match."""
HOST = re.compile(r"(?=[!-.0-~]{1,253}$)(?![^:]*:[^:]*$)[^.]{1,63}(\.[^.]{1,63})*\.?")
"""Names that can be looked up."""
AUTHORITY = "ca.pem"
"""File name of the internal authority's certificate."""
SECRET = ("tls_key", "secret_file", "key_file", "credentials_file")
PUBLIC = ("tls_cert", "tls_ca")
"""Keys of files that are read at the start."""

Problems: TypeAlias = Iterator[tuple[str, str]]


def problems(settings: Settings) -> Problems:
    """A start is refused with the first one; later ones may result from it."""
    yield from _server(settings.server)
    if (most := settings.storage.max_size_mb) is not None and most <= settings.storage.reserve_mb:
        yield "storage.max_size_mb", tr("has to be above reserve_mb ({least})", least=settings.storage.reserve_mb)
    yield from _reports(settings.reports)
    yield from _invoices(settings)
    yield from _machines(settings.machine)
    if settings.upstream:
        yield from _upstream(settings.upstream)
    if settings.backup and bool(settings.backup.recipients) == bool(settings.backup.passphrase_file):
        yield "backup", tr("needs either recipients or passphrase_file")
    if settings.server.public_url:
        yield from _address(settings.server.public_url, ("https", "http"), "server.public_url")
    if settings.printer and "://" in settings.printer.address:
        yield from _address(settings.printer.address, ("tcp",), "printer.address")
    yield from _webhooks(settings.webhook)


def _server(server: Server) -> Problems:
    for value in server.allowed_origins:
        if not ORIGIN.fullmatch(value):
            problem = tr(
                "{value} is not an origin as browsers write it, such as {right}",
                value=quoted(value),
                right='"https://till.example"',
            )
            yield "server.allowed_origins", problem
    for one, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if getattr(server, one) and not getattr(server, other):
            yield f"server.{one}", tr("goes with {other}, which is missing", other=other)
    if server.proxy == "never" and server.has_tls:
        yield "server.proxy", tr("HTTPS is HAProxy's: {value} goes with plain HTTP alone", value=quoted("never"))
    if server.tls and server.tls_cert:
        yield "server.tls", tr("excludes {other}: one or the other", other="tls_cert")
    if server.tls_folder and not server.tls:
        yield "server.tls_folder", tr("means something only with {other}", other='tls = "internal"')
    if not HOST.fullmatch(server.host):
        yield "server.host", tr("{value} is neither an address nor a host name", value=quoted(server.host))
    if not (is_loopback(server.host) or server.tls or server.tls_cert or server.allow_plain_lan):
        yield (
            "server.host",
            tr(
                '{value} can be reached from the network: set tls = "internal", or tls_cert and tls_key, or '
                "allow_plain_lan = true (API keys would travel in clear)",
                value=quoted(server.host),
            ),
        )


def _reports(reports: Reports) -> Problems:
    yield from _zone(reports.timezone, "reports.timezone")
    for letter in reports.payment_labels:
        if letter not in LABELS["fr"]:
            problem = tr("{value} is not a method of payment (E V C M B A)", value=quoted(letter))
            yield f"reports.payment_labels.{letter}", problem


def _zone(name: str, key: str) -> Problems:
    try:
        zone(name)
    except (KeyError, ValueError, OSError):
        yield key, tr("{value} is not a known time zone", value=quoted(name))


def not_a_nim(value: str) -> str:
    return tr(
        "{value} is not a NIM (two capital letters, eight digits, and maybe - and a counter, as EL02000015-1)",
        value=quoted(value),
    )


def _invoices(settings: Settings) -> Problems:
    try:
        re.compile(settings.invoices.ifu_pattern)
    except re.error as error:
        yield "invoices.ifu_pattern", tr("is no regular expression: {why}", why=error)
    for name, letters in LETTERS.items():
        for letter in getattr(settings.invoices, name):
            if letter not in letters:
                message = tr("{value} is none of {letters}", value=quoted(letter), letters=" ".join(letters))
                yield f"invoices.{name}.{letter}", message
    if not is_pattern(settings.numbering.pattern):
        message = tr("needs {{type}} and {{year}}, and beside its places capitals, digits and / _ . - alone")
        yield "numbering.pattern", message.format()
    elif settings.numbering.enabled:
        series = Series(settings.numbering.pattern, settings.numbering.digits)
        number = series.number(series.prefix("FV", "EL02000015", now_millis()), 1)
        if len(number) > SHORT_LENGTH:
            message = tr("gives numbers as {number}, of more than {most} characters", number=number, most=SHORT_LENGTH)
            yield "numbering.pattern", message
    for upto in settings.stamp_duty.steps:
        if parse_integer(upto, 10) is None:
            yield f"stamp_duty.steps.{upto}", tr("{value} is no amount in whole francs", value=quoted(upto))


def _machines(machines: tuple[Machine, ...]) -> Problems:
    if not machines:
        yield "machine", tr("no [[machine]] section: nothing to certify with")
    for index, machine in enumerate(machines):
        at = f"machine[{index}]"
        if not NIM.fullmatch(machine.nim):
            yield f"{at}.nim", not_a_nim(machine.nim)
        yield from _zone(machine.timezone, f"{at}.timezone")
        if machine.port.is_network:
            yield from _address(machine.port, ("tcp", "rfc2217"), f"{at}.port", "host:port")
    yield from _unique({f"machine[{index}].nim": machine.nim for index, machine in enumerate(machines)}, short_nim)
    yield from _spares(machines)
    ports = {f"machine[{index}].port": machine.port for index, machine in enumerate(machines) if machine.enabled}
    yield from _unique(ports, _line)


def _spares(machines: tuple[Machine, ...]) -> Problems:
    """One spare for a machine; that machine is another one of this box and no spare itself."""
    spares = {short_nim(machine.nim): machine.spare_for for machine in machines}
    found: dict[str, str] = {}
    for index, machine in enumerate(machines):
        if machine.spare_for is None:
            continue
        at, first = f"machine[{index}].spare_for", short_nim(machine.spare_for)
        if not NIM.fullmatch(machine.spare_for):
            yield at, not_a_nim(machine.spare_for)
        elif first == short_nim(machine.nim):
            yield at, tr("{value} is this machine itself", value=quoted(machine.spare_for))
        elif first not in spares:
            yield at, tr("{value} is no machine of this configuration", value=quoted(machine.spare_for))
        elif spares[first] is not None:
            yield at, tr("{value} is a spare itself", value=quoted(machine.spare_for))
        elif other := found.get(first):
            yield at, tr("{value} has a spare already ({other})", value=quoted(machine.spare_for), other=other)
        found.setdefault(first, f"machine[{index}]")


def _line(place: str) -> str:
    """Equal for the same line, however it is written."""
    return urlsplit(place).netloc.lower() if "://" in place else os.path.realpath(place)


def _upstream(upstream: Upstream) -> Problems:
    kind = KINDS[upstream.kind]
    for server in upstream.url.split(",") if kind.takes_servers else [upstream.url]:
        yield from _address(server.strip(), kind.schemes, "upstream.url")
    if "http" in kind.schemes:
        yield from _in_clear(upstream, "upstream")
    signs = "credentials_file" if kind.takes_credentials else "secret_file"
    if not (upstream.secret_file or upstream.key_file or (kind.takes_credentials and upstream.credentials_file)):
        yield f"upstream.{signs}", tr("{one} or {other} is needed", one=signs, other="key_file")
    if upstream.credentials_file and not kind.takes_credentials:
        others = " or ".join(f'kind = "{name}"' for name, other in KINDS.items() if other.takes_credentials)
        yield "upstream.credentials_file", tr("means something only with {other}", other=others)


def _webhooks(webhooks: tuple[Webhook, ...]) -> Problems:
    for index, webhook in enumerate(webhooks):
        yield from _address(webhook.url, ("https", "http"), f"webhook[{index}].url")
        yield from _in_clear(webhook, f"webhook[{index}]")
    yield from _unique({f"webhook[{index}].url": webhook.url for index, webhook in enumerate(webhooks)})
    destinations = {f"webhook[{index}].name": webhook.destination for index, webhook in enumerate(webhooks)}
    yield from _unique({"[upstream]": "upstream", **destinations})


def _address(url: str, schemes: tuple[str, ...], key: str, form: str = "…") -> Problems:
    """If `form` is `host:port`, the address has no other part."""
    if "@" in re.split("[/?#]", url.split("://", 1)[-1])[0]:
        yield key, tr("must not carry a password (it would end up in a log)")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        if form != "…":
            usable = usable and parts.port is not None and not (parts.path.strip("/") or parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable:
        scheme = next((each for each in schemes if url.startswith(f"{each}://")), schemes[0])
        yield key, tr("{value} is not an address {expected}", value=quoted(url), expected=f"{scheme}://{form}")


def _in_clear(receiver: Upstream | Webhook, at: str) -> Problems:
    url = urlsplit(receiver.url)
    if url.scheme == "http" and not receiver.allow_plain_http and not is_loopback(url.hostname or ""):
        problem = tr("{value} would send in clear; use https, or allow_plain_http = true", value=quoted(receiver.url))
        yield f"{at}.url", problem


def _unique(values: Mapping[str, str], essence: Callable[[str], str] = str) -> Problems:
    first: dict[str, str] = {}
    for key, value in values.items():
        other = first.setdefault(essence(value), key)
        if other != key:
            yield key, tr("{value} is the same as {other}; each needs its own", value=quoted(value), other=other)


def unreadable_files(settings: Settings, environ: Mapping[str, str]) -> Problems:
    if settings.server.tls and not os.access(settings.tls_home / AUTHORITY, os.R_OK):
        yield (
            "server.tls",
            tr(
                "no authority in {folder}; a new box: mcfd tls init; else the one that tills trust is in the backup: mcfd restore --all --keep-newer FILE",
                folder=settings.tls_home,
            ),
        )
    for key, path in files_of_start(settings):
        place = secret_path(path, environ)
        try:
            with as_owner(place.parent):
                is_empty = not read_secret(path, environ)
            if is_empty:
                yield key, tr("{path} is empty", path=place)
        except OSError as error:
            # The folder is root's alone: what a service lacks in it is refused as if it were there.
            is_lacking = place.parent.name == CREDENTIALS and "CREDENTIALS_DIRECTORY" in environ
            why = (
                tr("it is missing, or newer than the last start (restart the service)") if is_lacking else reason(error)
            )
            yield key, tr("{path} cannot be read: {why}", path=place, why=why)
    yield from _certificate(settings.server, environ)


def _certificate(server: Server, environ: Mapping[str, str]) -> Problems:
    if not (server.tls_cert and server.tls_key):
        return
    from common.front import BadCertificate, check_pair  # noqa: PLC0415  with structlog: most commands need neither

    try:
        check_pair(secret_path(server.tls_cert, environ), secret_path(server.tls_key, environ))
    except BadCertificate as error:
        yield "server.tls_cert", str(error)


def files_of_start(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Path of the key, and its file, for each file that the daemon reads at its start."""
    return (found for found in named_paths(settings) if found[0].rpartition(".")[2] in (*SECRET, *PUBLIC))


def hidden_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Those of `files_of_start` that the daemon's user may not read: root can read every file, the daemon those of its
    user and those that systemd hands over."""
    for key, file in files_of_start(settings):
        with as_owner(settings.storage.path.parent):
            is_readable = os.access(file, os.R_OK, effective_ids=True)
        if not (is_readable or file.parent.name == CREDENTIALS):
            yield key, file


def secret_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Path of the key, and its file, for each file that only its owner should read."""
    return (found for found in named_paths(settings) if found[0].rpartition(".")[2] in SECRET)


def quoted(value: object) -> str:
    return f'"{value}"'
