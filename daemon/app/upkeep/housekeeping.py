"""Upkeep: watches the clock's synchronisation; once a day deletes expired idempotency keys and events. Certifications
and closures stay for good; those of a sandbox, which may grow without end, stay as long as its share has room.
The ledger also records the last use of keys and sessions, and changes of the configuration."""

import asyncio
import hashlib
import json
import subprocess
from pathlib import Path

import msgspec
import structlog

from common.files import secret_path
from common.front import BadCertificate, FrontError, FrontServer, check_pair
from common.process import own_program
from common.sockets import box_names
from common.wire.instants import now_millis
from daemon.api.access.context import Uses
from daemon.app.reload import BringIntoForce, Prepare
from daemon.core.audit import DAEMON
from daemon.core.errors import StorageError
from daemon.settings import Settings
from daemon.store.store import Store
from daemon.store.tables import audit
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.keys import note_uses
from daemon.store.tables.meta import read_meta, write_meta
from daemon.store.tables.people import IDLE_MS, note_session_uses
from daemon.time_sync import is_synchronised
from daemon.tls import NOT_VALID, SERVER_PAIR, AuthorityError, NotRenewed

log = structlog.get_logger(__name__)

ASK_EVERY = 60.0

FIRST_SECONDS = 600.0
EVERY_SECONDS = 86_400.0
SANDBOX_SECONDS = 60.0
USES_SECONDS = 300.0

CONFIGURATION = "configuration"

CHECK_SECONDS = 3600.0
"""Seconds: often enough for a changed address (DHCP); a certificate is renewed a month before its end."""


class ClockWatch:
    """`synchronised` is the last reading; False if unknown, and then clocks are judged by their own times."""

    def __init__(self) -> None:
        self.synchronised = False

    async def check(self) -> None:
        found = await is_synchronised()
        if found != self.synchronised:
            log.info("clock.synchronised" if found else "clock.not_synchronised")
        self.synchronised = found

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(ASK_EVERY)
            await self.check()


async def run_housekeeping(store: Store, first: float = FIRST_SECONDS, every: float = EVERY_SECONDS) -> None:
    """Until cancelled; the first run is well after the start, when tills are being served."""
    await asyncio.sleep(first)
    while True:
        try:
            log.info("ledger.tidied", rows=await store.retention.prune(now_millis()))
        except StorageError as error:
            log.warning("ledger.not_tidied", cause=str(error))
        await asyncio.sleep(every)


async def trim_sandboxes(store: Store, budget: int, every: float = SANDBOX_SECONDS) -> None:
    """Until cancelled; `budget` in bytes for each sandbox."""
    while True:
        await asyncio.sleep(every)
        try:
            await store.retention.trim_sandbox(now_millis(), budget)
        except StorageError as error:
            log.warning("sandbox.not_tidied", cause=str(error))


async def store_key_uses(uses: Uses, sessions: dict[bytes, int], store: Store, every: float = USES_SECONDS) -> None:
    """Until cancelled; a crash loses the uses of at most `every` seconds.

    A new last hash of the audit log goes to the service's log too: there it survives if the audit log is cut off."""
    last_id = 0
    while True:
        await asyncio.sleep(every)
        await write_uses(uses, sessions, store)
        for entry in await store.ledger.read(newest_entries, limit=1):
            if entry.id != last_id:
                log.info("audit.head", id=entry.id, hash=entry.hash.hex())
                last_id = entry.id


async def write_uses(uses: Uses, sessions: dict[bytes, int], store: Store) -> None:
    used = {int(key_id): at for key_id, at in uses.items()}
    try:
        if used:
            await store.ledger.write(note_uses, used)
        await store.ledger.write(note_session_uses, dict(sessions), idle_before=now_millis() - IDLE_MS)
    except StorageError as error:
        log.warning("uses.not_written", cause=str(error))
        return
    uses.clear()
    sessions.clear()


async def note_configuration(store: Store, settings: Settings) -> None:
    """At a start; a failed write does not prevent it."""
    try:
        await _note_configuration(store, settings)
    except StorageError as error:
        log.warning("configuration.not_noted", cause=str(error))


async def _note_configuration(store: Store, settings: Settings) -> None:
    """If the configuration has changed since the last entry, adds one to the audit log, with the changed sections."""
    now = {name: _digest(getattr(settings, name)) for name in settings.__struct_fields__ if name != "file"}
    text = json.dumps(now, sort_keys=True)
    before = store.retention.peek(read_meta, CONFIGURATION)
    if text == before:
        return
    digests = json.loads(before or "{}")
    changed = [name for name, digest in now.items() if digests.get(name) != digest]
    sections = {"sections": ", ".join(changed)}
    await store.ledger.write(
        audit.add, "configuration.changed", "mcfd.toml", at=now_millis(), by=DAEMON, detail=sections
    )
    await store.retention.write(write_meta, CONFIGURATION, text)


def noting_configuration(store: Store) -> Prepare:
    """On SIGHUP, after the new configuration is in force."""

    def prepare(settings: Settings) -> BringIntoForce:
        async def into_force() -> None:
            await _note_configuration(store, settings)

        return into_force

    return prepare


def _digest(section: object) -> str:
    return hashlib.sha256(msgspec.json.encode(section, enc_hook=str)).hexdigest()[:16]


class Certificate:
    """`files` are certificate chain and private key; None without TLS."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last_error = ""
        self.end = 0
        """When the certificate in use ends (ms); 0 while unknown, or without TLS."""

    @property
    def files(self) -> tuple[Path, Path] | None:
        server = self._settings.server
        if server.tls:
            pem = self._settings.tls_home / SERVER_PAIR
            return pem, pem
        if server.tls_cert and server.tls_key:
            return secret_path(server.tls_cert), secret_path(server.tls_key)
        return None

    async def freshen(self) -> None:
        """Renews our own authority's certificate if due, in a process of its own (`daemon.tls.authority`). Raises
        AuthorityError, NotRenewed."""
        server, folder = self._settings.server, self._settings.tls_home
        if not server.tls:
            return
        names = box_names(server.host, server.allowed_hosts)
        command = (*own_program("from daemon.tls.authority import main; sys.exit(main())"), str(folder), *names)
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        if done.returncode:
            kind = AuthorityError if done.returncode == NOT_VALID else NotRenewed
            raise kind(done.stderr.decode(errors="replace").strip())
        if done.stdout:
            log.info("certificate.renewed", **json.loads(done.stdout))

    async def freshen_at_start(self) -> None:
        """As `freshen`; but while the existing certificate is valid, an error is only logged, and the start goes on."""
        try:
            await self.freshen()
        except NotRenewed as error:
            log.warning("certificate.not_renewed", reason=str(error))
            self._last_error = str(error)

    def pem(self) -> bytes | None:
        """Chain and private key; None without TLS. Raises BadCertificate, also if they do not match."""
        return check_pair(*self.files) if self.files else None

    async def run(self, front: FrontServer | None) -> None:
        """Until cancelled. An error is logged when it begins or changes; certifications go on."""
        while self.files:
            await self._read_end()
            await asyncio.sleep(CHECK_SECONDS)
            if self._settings.server.tls:
                await self._refresh(front)

    async def _read_end(self) -> None:
        if self.files:
            command = (
                *own_program("from daemon.tls.authority import print_end; sys.exit(print_end())"),
                str(self.files[0]),
            )
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
            self.end = int(done.stdout or 0)

    def reloading(self, front: FrontServer | None) -> BringIntoForce:
        """On SIGHUP; the files are checked before anything changes."""
        self.pem()

        async def into_force() -> None:
            await self._refresh(front)
            await self._read_end()

        return into_force

    async def _refresh(self, front: FrontServer | None) -> None:
        try:
            await self.freshen()
            pem = self.pem()
            if front is not None and pem is not None:
                await front.renew(pem)
        except (AuthorityError, BadCertificate, FrontError) as error:
            if str(error) != self._last_error:
                log.error("certificate.not_renewed", reason=str(error))  # noqa: TRY400  one line, not a traceback
            self._last_error = str(error)
        else:
            self._last_error = ""
