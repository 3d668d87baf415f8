"""What a receiver is opened with: values and paths only; secrets stay in their files until an adapter reads them."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from common.wire.presence import PresenceAnswer
from daemon.core.delivery import Delivery
from daemon.core.upstream_kinds import KINDS


class BadOptions(ValueError):
    """The receiver cannot be opened as configured; the text names the key and never a secret."""


def no_keys(nim: str) -> Sequence[str]:
    del nim
    return ()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` in seconds for one try. Every file in `key_files` signs each event. With `receipt` an answer counts only when it
    proves that the event was read (`common.wire.receipt`). `lane_keys`: the ids of a NIM's keys for the relay, asked at each presence."""

    url: str
    key_files: tuple[Path, ...] = ()
    credentials_file: Path | None = None
    tls_ca: Path | None = None
    subject_prefix: str = "mcf"
    allow_plain: bool = False
    timeout: float = 10.0
    receipt: bool = False
    lane_keys: Callable[[str], Sequence[str]] = no_keys


def read_file(path: Path, what: str) -> str:
    """A short text file, or BadOptions that names it."""
    try:
        return path.read_text("ascii").strip()
    except OSError as error:
        raise BadOptions(f"{what} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadOptions(f"{what} {path}: not text") from None


def tls_context(ca: Path | None, *, is_used: bool = True) -> ssl.SSLContext:
    """Certificates and host names are checked, against `ca` or else what the system trusts: to read all of that takes a processor 30 ms, so
    where no TLS is spoken (`is_used`) nobody is trusted."""
    if not (ca or is_used):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise BadOptions(f"upstream.tls_ca {ca}: {error.strerror or error}") from None


class UpstreamReceiver(Protocol):
    """As `usecases.delivery.replicate.UpstreamReceiver`: `deliver` ends in bounded time and does not raise for the other side's doing."""

    @property
    def key_id(self) -> str:
        """Of the key that signs first."""
        ...

    async def deliver(
        self, event: bytes, *, report_id: str, subject: str, nim: str, since: int = 0, last_sent: int = 0
    ) -> Delivery: ...
    async def announce(self, presence: bytes, *, nim: str) -> PresenceAnswer | None:
        """What headquarters asks for; None when nobody heard."""
        ...

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        """A message that says nothing (`common.wire.trial`), on the way of all others as far as it can go without being kept."""
        ...

    async def aclose(self) -> None: ...


def open_receiver(kind: str, options: Options) -> UpstreamReceiver:
    """BadOptions when it cannot be opened as configured; whether anybody answers there is found out at delivery."""
    if kind not in KINDS:
        raise BadOptions(f"upstream.kind: {kind!r} is none of {', '.join(KINDS)}")
    receiver: UpstreamReceiver = import_module(KINDS[kind].module).open_receiver(options)
    return receiver
