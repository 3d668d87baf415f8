"""The running daemon, by its HTTP API: its own report comes before any check."""

import http.client
import ssl
from dataclasses import dataclass
from ipaddress import ip_address

import msgspec

from common.front_config import ERRORS, program
from common.language import Text, ambient, tr
from common.language.system import reason
from daemon.core.machine.state import same_machine
from daemon.doctor.wording import Check, CheckResult
from daemon.settings import Server

PATIENCE_SECONDS = 5.0


class LiveAnswer(msgspec.Struct):
    status: str
    version: str


class MachineHealth(msgspec.Struct, rename="camel", kw_only=True):
    """As in `/health/ready`; its texts are in the terminal's language."""

    nim: str
    connected: bool
    clock_drift: int | None = None
    attention: str
    attention_code: str = ""
    last_error: str
    last_error_code: str = ""
    waiting: int
    tax_server_days: int | None = None
    tax_server_waiting: int | None = None
    test_mode: bool = False
    stands_for: str | None = None
    replaced_by: str | None = None


class Health(msgspec.Struct):
    machines: tuple[MachineHealth, ...]


@dataclass(frozen=True)
class Service:
    """`machines` by NIM; `version` is empty without an answer, `problem` with one."""

    address: str
    version: str = ""
    problem: str = ""
    stranger: bool = False
    machines: tuple[MachineHealth, ...] = ()

    @property
    def running(self) -> bool:
        return bool(self.version)

    def machine(self, nim: str) -> MachineHealth | None:
        return next((machine for machine in self.machines if same_machine(machine.nim, nim)), None)


def ask(server: Server) -> Service:
    """Blocks for a few seconds at most."""
    tls = bool(server.tls or server.tls_cert)
    host = _reachable(server.host)
    address = f"{'https' if tls else 'http'}://{host}:{server.port}"
    try:
        first = _get(host, server.port, "/health/live", tls=tls)
        if ERRORS[503][0].encode() in first:
            return Service(address, problem=tr("HAProxy answers, mcfd does not"))
        live = msgspec.json.decode(first, type=LiveAnswer)
        health = msgspec.json.decode(_get(host, server.port, "/health/ready", tls=tls), type=Health)
    except (msgspec.MsgspecError, http.client.HTTPException, ssl.SSLError) as error:
        return Service(address, problem=str(error) or type(error).__name__, stranger=True)
    except OSError as error:
        return Service(address, problem=tr(reason(error)))
    return Service(address, version=live.version, machines=health.machines)


def check_service(service: Service, version: str) -> CheckResult:
    values = {"address": service.address, "why": service.problem}
    if service.stranger:
        return Check("daemon").fail(
            "something else than mcfd answers at {address} ({why})",
            "stop that other program, or change port in [server] (sudo ss -ltnp shows who listens)",
            **values,
        )
    if not service.running:
        return Check("daemon").fail(
            "no answer at {address} ({why})",
            "sudo systemctl restart mcfd; if it does not stay up: journalctl -u mcfd -u front-mcfd -n 20",
            **values,
        )
    if service.version != version:
        found = Text("version {running} runs, {installed} is installed", running=service.version, installed=version)
        return Check("daemon").warn(found, "sudo systemctl restart mcfd")
    return Check("daemon").ok("mcfd {version} answers at {address}", address=service.address, version=version)


def check_front(server: Server) -> list[CheckResult]:
    """HAProxy, if it is needed: with HTTPS, or beyond this box."""
    if not server.is_proxied:
        return []
    check, found = Check("proxy"), program()
    if found is None:
        return [check.fail("HAProxy is not installed", "sudo apt install haproxy, then sudo systemctl restart mcfd")]
    return [check.ok("HAProxy is in front: {program}", program=found)]


def _get(host: str, port: int, path: str, *, tls: bool) -> bytes:
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
    if tls:
        # `check_certificate` checks the certificate; this reads only the health, on the same box.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=context)
    try:
        connection.request("GET", path, headers={"Host": "localhost", "Accept-Language": ambient()})
        return connection.getresponse().read()
    finally:
        connection.close()


def _reachable(host: str) -> str:
    """The address to connect to from the box itself."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"  # noqa: PLR2004  the version's name
