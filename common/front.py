"""HAProxy in front of a server on a network: its configuration, its certificate, and its process if no unit runs it.

HAProxy ends TLS, limits the time of heads and idle connections, limits connections and requests by address (IPv6: by
/64), and forwards the client's address. The server listens on a Unix socket in the shared folder. `TRUSTED_HEADER`
(`front_config`) in an answer gives the client's address the larger limits for an hour: it has a valid key."""

import asyncio
import contextlib
import shutil
import signal
import socket
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from common.files import read_file, write_whole
from common.front_config import Front, FrontLimits, configuration, error_files, idle_configuration, program
from common.language.system import reason
from common.sockets import addresses, bind

__all__ = ["BadCertificate", "FrontError", "FrontLimits", "FrontServer", "check_pair", "withdraw"]

log = structlog.get_logger(__name__)

COMMAND_SECONDS: Final = 5.0
RESTART_SECONDS: Final = 1.0
STOP_SECONDS: Final = 2.0
BIND_TRIES: Final = 40
BIND_PAUSE: Final = 0.05


class FrontError(Exception):
    """HAProxy is missing, or refuses its configuration or certificate."""


class BadCertificate(Exception):
    """Certificate and key are unreadable or do not match; names both files."""


def check_pair(cert: Path, key: Path) -> bytes:
    """Both in one PEM, as HAProxy needs it. Raises BadCertificate if they are unreadable or do not match."""
    try:
        parts = [read_file(each) for each in dict.fromkeys((cert, key))]
        # Without a password OpenSSL would prompt for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        why = error.reason or "no certificate with its private key (PEM)"
        raise BadCertificate(f"{cert} with {key}: {why}") from error
    except OSError as error:
        raise BadCertificate(f"{cert} with {key}: {reason(error)}") from error
    lines = b"\n".join(parts).splitlines()
    return b"".join(line + b"\n" for line in lines if line.strip())


async def withdraw(folder: Path | None, host: str, port: int) -> None:
    """Removes the configuration, so that HAProxy's unit does not start; a running one releases the port."""
    if folder is None or not (folder / "haproxy.cfg").exists():
        return
    _replace(folder / "haproxy.cfg", idle_configuration(folder).encode())
    with contextlib.suppress(OSError):
        await _command(folder / "master.sock", "reload\n")
        for listener in await _bound(host, port):
            listener.close()
    (folder / "haproxy.cfg").unlink(missing_ok=True)


def front_of(folder: Path, host: str, port: int, *, tls: bool) -> Front:
    """For HAProxy's unit: HAProxy binds the addresses itself."""
    return Front(folder=folder, binds=tuple(_unit_binds(host, port)), tls=tls, limits=FrontLimits())


class FrontServer:
    """`folder` is HAProxy's unit's; without it HAProxy is a child of this process. Call `start` before the server
    listens on `socket`: OSError if the address cannot be bound, FrontError without HAProxy."""

    def __init__(
        self, folder: Path | None, host: str, port: int, *, pem: bytes | None = None, limits: FrontLimits | None = None
    ) -> None:
        self._is_child = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="front-"))
        self._host, self.port = host, port
        self._pem = pem
        self._installed = b""
        """What HAProxy is known to show; empty while that is not known."""
        self._limits = limits or FrontLimits()
        self._listeners: list[socket.socket] = []
        self._running: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def socket(self) -> Path:
        return self._folder / "server.sock"

    async def start(self) -> None:
        if not self._is_child:
            if self._write(_unit_binds(self._host, self.port)):
                await self._reload()
            elif self._pem is not None:  # it may have read an older one
                try:
                    await self._install(self._pem)
                except FrontError as error:
                    log.error("certificate.not_renewed", reason=str(error))  # noqa: TRY400  one line, not a traceback
            return
        haproxy = program()
        if haproxy is None:
            raise FrontError("HAProxy is not installed (Debian: apt install haproxy); HTTPS and other hosts need it")
        await self._bind()
        self._write([f"fd@{listener.fileno()}" for listener in self._listeners])
        self._running = asyncio.get_running_loop().create_task(self._run_child(haproxy), name="front")

    async def renew(self, pem: bytes) -> None:
        """Used from the next handshake on; open connections stay. Raises FrontError if HAProxy refuses it. A HAProxy
        that is not running reads the file at its start."""
        _replace(self._folder / "server.pem", pem)
        if pem != self._installed:
            await self._install(pem)

    async def _install(self, pem: bytes) -> None:
        file, control = self._folder / "server.pem", self._folder / "control.sock"
        try:
            await _command(control, f"set ssl cert {file} <<\n{pem.decode()}\n")
            answer = await _command(control, f"commit ssl cert {file}\n")
        except OSError as error:
            log.warning("front.unreachable", reason=error.strerror or str(error) or type(error).__name__)
            return
        if "Success" not in answer:
            raise FrontError(f"HAProxy does not take the certificate: {answer.strip()}")
        self._installed = pem

    async def stop(self) -> None:
        """The child accepts no more, sends what it has, and ends; a unit's HAProxy continues and answers 503."""
        if not self._is_child:
            return
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if (process := self._process) is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGUSR1)  # no new connections
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _bind(self) -> None:
        self._listeners = await _bound(self._host, self.port)
        self.port = self._listeners[0].getsockname()[1]

    def _write(self, binds: Sequence[str]) -> bool:
        """Returns whether the configuration has changed."""
        front = Front(folder=self._folder, binds=tuple(binds), tls=self._pem is not None, limits=self._limits)
        if self._pem is not None:
            _replace(self._folder / "server.pem", self._pem)
        for name, content in error_files().items():
            _replace(self._folder / name, content)
        return _replace(self._folder / "haproxy.cfg", configuration(front).encode())

    async def _run_child(self, haproxy: str) -> None:
        """Runs HAProxy as a child that ends with this process; restarts it when it ends by itself."""
        command = ("setpriv", "--pdeathsig", "KILL", haproxy, "-db", "-q", "-f", str(self._folder / "haproxy.cfg"))
        descriptors = [listener.fileno() for listener in self._listeners]
        while True:
            self._process = await asyncio.create_subprocess_exec(*command, pass_fds=descriptors)
            code = await self._process.wait()
            log.error("front.ended", code=code)
            await asyncio.sleep(RESTART_SECONDS)

    async def _reload(self) -> None:
        try:
            await _command(self._folder / "master.sock", "reload\n")
        except FileNotFoundError:
            return  # HAProxy's unit starts later, and reads the file then
        except OSError as error:
            log.warning("front.unreachable", reason=error.strerror or str(error))


async def _bound(host: str, port: int) -> list[socket.socket]:
    """Retries for a moment: a HAProxy that reloads, or whose parent was killed, releases the port with a delay."""
    for _ in range(BIND_TRIES):
        with contextlib.suppress(OSError):
            return bind(host, port)
        await asyncio.sleep(BIND_PAUSE)
    return bind(host, port)


async def _command(place: Path, text: str) -> str:
    """Returns the answer. Raises OSError, also without an answer in time."""
    async with asyncio.timeout(COMMAND_SECONDS):
        reader, writer = await asyncio.open_unix_connection(place)
        try:
            writer.write(text.encode())
            return (await reader.read()).decode("utf-8", "replace")
        finally:
            writer.close()


def _unit_binds(host: str, port: int) -> list[str]:
    return [
        f"[{address[0]}]:{port} v6only" if family == socket.AF_INET6 else f"{address[0]}:{port}"
        for family, address in addresses(host, port)
    ]


def _replace(file: Path, content: bytes) -> bool:
    """Writes a file readable by the group, in place of whatever that group has put there; returns whether it has changed."""
    with contextlib.suppress(OSError):
        if read_file(file, len(content) + 1) == content:
            return False
    write_whole(file, content, 0o640)
    return True
