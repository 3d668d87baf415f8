"""Sends closures to headquarters as configured; without `[upstream]` they stay in the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from common.files import secret_path
from common.turns import ended
from common.wire.instants import now_millis
from daemon.app.outward.presence import PresenceSource
from daemon.app.reload import BringIntoForce
from daemon.app.runtime import Runtime
from daemon.core.audit import Actor
from daemon.core.delivery import Backlog, Outgoing, UpstreamReceiver
from daemon.core.ledger.attempt import Mode
from daemon.core.machine.state import same_machine
from daemon.owner import as_owner
from daemon.settings import Settings, Upstream
from daemon.settings.model import Webhook
from daemon.settings.source import is_joined
from daemon.store.maintenance.numbers import apply_last_z
from daemon.store.store import Store
from daemon.store.tables.events import UPSTREAM
from daemon.upstream.options import Options, compose, open_receiver
from daemon.usecases.delivery.presence import Announcer
from daemon.usecases.delivery.replicate import Backoff, Replicator
from daemon.usecases.worker.machine_worker import BookEvent

if TYPE_CHECKING:
    from daemon.upstream.nats import NatsReceiver


@asynccontextmanager
async def replicating(runtime: Runtime) -> AsyncIterator[Replication]:
    """Runs beside everything else and delays nothing."""
    replication = Replication(runtime)
    runtime.listeners.append(replication.on_event)
    await replication.prepare(runtime.settings)()
    try:
        yield replication
    finally:
        await replication.stop()


class Sender(NamedTuple):
    """Delivery to one receiver, with its running `tasks`."""

    replicator: Replicator[Any]
    receiver: UpstreamReceiver
    tasks: tuple[asyncio.Task[None], ...]


class Senders:
    """Deliveries to some destinations of the outbox."""

    def __init__(self, store: Store, *destinations: str) -> None:
        self.destinations = destinations
        self._store = store
        self._senders: list[Sender] = []

    @property
    def configured(self) -> bool:
        """Whether anything can be delivered."""
        return bool(self._senders)

    async def send_again(self, *, at: int, by: Actor) -> int:
        """Sends again all that a receiver has refused; returns the number."""
        outboxes = [self._store.outbox_for(destination) for destination in self.destinations]
        count = sum([await outbox.replay(nim=None, from_z=None, at=at, by=by) for outbox in outboxes])
        self.wake_all()
        return count

    def wake_all(self) -> None:
        """The outbox has more to send, of any book."""
        for sender in self._senders:
            sender.replicator.wake_all()

    def wake(self, nim: str, mode: Mode) -> None:
        for sender in self._senders:
            sender.replicator.wake(nim, mode)

    def offer_parked(self) -> None:
        for sender in self._senders:
            sender.replicator.offer_parked()

    def begin(
        self, replicator: Replicator[Any], receiver: UpstreamReceiver, **works: Coroutine[Any, Any, None]
    ) -> None:
        """`works` run as tasks, named by their keywords."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(work, name=name) for name, work in works.items()]
        self._senders.append(Sender(replicator, receiver, tuple(tasks)))

    async def stop(self) -> None:
        """A message in transit may arrive and be sent once more: the receiver recognises it by its id."""
        senders, self._senders = self._senders, []
        await ended(*(task for sender in senders for task in sender.tasks))
        for sender in senders:
            await sender.receiver.aclose()


class Replication(Senders):
    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime.store, UPSTREAM)
        self._outbox = runtime.store.outbox
        self._runtime = runtime
        self._words = PresenceSource(runtime)

    async def figures(self) -> Sequence[Backlog]:
        """The backlogs that `mcfd upstream status` shows."""
        return await self._outbox.backlog()

    def on_event(self, event: BookEvent) -> None:
        if event.type == "closure.created":
            self.wake(event.book.nim, event.book.mode)

    def prepare(self, settings: Settings) -> BringIntoForce:
        """Checks the settings and returns the step that applies them; until then nothing changes. Raises BadOptions."""
        upstream = settings.upstream
        lane_keys = self._runtime.store.key_ring.relay_key_ids
        receiver = None if upstream is None else headquarters(upstream, lane_keys, subject_names(settings))

        async def into_force() -> None:
            await self.stop()
            if upstream is not None and receiver is not None:
                self._start(upstream, receiver)

        return into_force

    def _start(self, upstream: Upstream, receiver: UpstreamReceiver) -> None:
        replicator = Replicator[Outgoing](
            self._outbox,
            self._outbox.waiting,
            receiver,
            partial(compose, box=upstream.box, key_id=receiver.key_id),
            clock=now_millis,
            backoff=Backoff(most=upstream.retry_max),
            sandbox=upstream.include_sandbox,
        )
        works = {"replication": replicator.run()}
        if upstream.presence:
            modes: frozenset[Mode] = frozenset({"live", "test"}) if upstream.include_sandbox else frozenset({"live"})
            words = partial(self._words.words, receiver.key_id)
            announcer = Announcer(receiver, words, self._resend, modes=modes, learn_z=self._learn_z)
            works["presence"] = announcer.run()
        self.begin(replicator, receiver, **works)

    async def _resend(self, nim: str, mode: Mode, from_z: int, to_z: int) -> int:
        count = await self._outbox.resend(nim, mode, from_z, to_z)
        self.wake(nim, mode)
        return count

    async def _learn_z(self, nim: str, last_z: int) -> None:
        """Decision 30: a ledger that has lost a Z number does not use it again if headquarters has it."""
        for worker in self._runtime.workers:
            if worker.book.mode == "live" and same_machine(worker.book.nim, nim):
                await self._runtime.store.decisions.write(apply_last_z, worker.book, last_z)


def headquarters(
    upstream: Upstream, lane_keys: Callable[[str], Sequence[str]] = lambda _: (), nims: Sequence[str] = ()
) -> UpstreamReceiver:
    """Opens the receiver of headquarters. Raises BadOptions if the configuration does not work. Root reads its files as their owner: those of
    a joined one are the daemon's."""
    files = (upstream.key_file, upstream.credentials_file, upstream.secret_file)
    import_module(f"daemon.upstream.{upstream.kind}")  # as root: that owner may not read the program's files
    with as_owner(next((file.parent for file in files if file), Path("/"))):
        return open_receiver(upstream.kind, _options(upstream, lane_keys, nims))


def subject_names(settings: Settings) -> tuple[str, ...]:
    """The NIMs that the box may use in NATS subjects: all, as configured, of a box that has joined; with credentials
    made by hand only whole NIMs, with their dash."""
    return tuple(machine.nim for machine in settings.machine if "-" in machine.nim or is_joined(settings))


def calls(upstream: Upstream, lane_keys: Callable[[str], Sequence[str]], nims: Sequence[str]) -> NatsReceiver | None:
    """The receiver of the relay's calls; None unless headquarters is reached by NATS."""
    from daemon.upstream import nats  # noqa: PLC0415  # where it is configured

    return nats.open_receiver(_options(upstream, lane_keys, nims)) if upstream.kind == "nats" else None


def _options(upstream: Upstream, lane_keys: Callable[[str], Sequence[str]], nims: Sequence[str]) -> Options:
    files = [path for path in (upstream.secret_file, upstream.key_file) if path is not None]
    return Options(
        url=upstream.url,
        key_files=tuple(secret_path(path) for path in files),
        credentials_file=None if upstream.credentials_file is None else secret_path(upstream.credentials_file),
        tls_ca=upstream.tls_ca,
        subject_prefix=upstream.subject_prefix,
        allow_plain=upstream.allow_plain_http,
        receipt=upstream.receipt,
        lane_keys=lane_keys,
        nims=tuple(nims),
    )


def webhook_receiver(number: int, webhook: Webhook) -> UpstreamReceiver:
    """Opens a webhook's receiver. Raises BadOptions, which names the section by `number`."""
    from daemon.upstream.https import open_webhook  # noqa: PLC0415  # with its HTTP client: most boxes have no webhook

    options = Options(
        url=webhook.url,
        key_files=(secret_path(webhook.secret_file),),
        tls_ca=webhook.tls_ca,
        allow_plain=webhook.allow_plain_http,
        receipt=webhook.receipt,
        section=f"webhook[{number}]",
    )
    return open_webhook(options)
