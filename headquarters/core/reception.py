"""Verifies a message: format, then signature, then whether this key may speak for this box."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Literal, TypeVar

import msgspec

from common.wire.calendar_closure import CalendarData, CalendarEvent, is_calendar, read_calendar
from common.wire.closure import MAX_BYTES, ClosureData, ClosureEvent, Mode, read_closure
from common.wire.errors import BadEvent
from common.wire.instants import instant_millis
from common.wire.keys import VerifyingKey, verifying_key
from common.wire.presence import Presence
from common.wire.signing import ID, NotSigned, WrongTime, verify
from headquarters.core.checks import ClosureRecord, machine_of, record_of

Content = TypeVar("Content", ClosureEvent | CalendarEvent, Presence)
Via = Literal["https", "nats"]
Reason = Literal["malformed", "oversized", "unsigned", "unknown", "foreign", "time", "fork", "withdrawn"]
"""Why a message is not in the table; `withdrawn`: removed later, because its key was stolen."""

DAY_BEGINS = timedelta(hours=4)
"""Closing after midnight belongs to the day before."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as received."""

    via: Via
    headers: Mapping[str, str]
    """by lower-case name"""
    body: bytes
    nim: str | None = None
    """from the subject, authenticated by NATS"""
    stream_seq: int | None = None
    at: int | None = None
    """When the stream received it, in ms; None if it came directly."""
    damage: str = ""
    """Fault of the message outside its body; then the content is ignored."""


class ReceivedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event with a valid signature."""

    message: Message
    machine: str
    created_at: int
    key_id: str


class Received(ReceivedEvent, frozen=True, kw_only=True):
    data: ClosureData
    record: ClosureRecord
    day: str
    """The shop's day, YYYY-MM-DD."""

    @property
    def mode(self) -> Mode:
        return self.data.mode


class ReceivedCalendar(ReceivedEvent, frozen=True, kw_only=True):
    """A month or year closure."""

    data: CalendarData


class MessageRefused(Exception):
    """The message is refused for `reason`; `nim` is its own unverified statement."""

    def __init__(self, reason: Reason, detail: str, nim: str = "") -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.nim = nim


def is_junk(message: Message, refused: MessageRefused) -> bool:
    """Whether no box sends this, although NATS authenticated the key it came with. A signature by a revoked or still
    unknown key is not junk: the stream contains such messages from earlier."""
    if message.via != "nats" or message.nim is None:
        return False
    if refused.reason == "unsigned":
        return ID not in message.headers
    is_other = refused.reason == "foreign" and machine_of(refused.nim) != machine_of(message.nim)
    return is_other or refused.reason in ("malformed", "oversized")


class RegisteredKey(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    key_id: str
    line: str
    added_at: int
    revoked_at: int | None
    stolen_since: int | None
    restored: int | None = None
    """Time of the last revocation that was undone."""

    def was_valid(self, at: int | None, now: float) -> bool:
        """Whether it is valid, or was at `at` (ms), before it was revoked or stolen. A revocation after `now` (s) has
        its time from a wrong clock, and counts from ever."""
        if self.revoked_at is None:
            return True
        end = self.revoked_at if self.stolen_since is None else min(self.revoked_at, self.stolen_since)
        return at is not None and at < end and self.revoked_at <= now * 1000


class KeysOfRevision:
    """All keys of one revision, in memory."""

    def __init__(self, revision: int, keys: Iterable[RegisteredKey]) -> None:
        self.revision = revision
        self._keys: dict[str, list[tuple[RegisteredKey, VerifyingKey]]] = {}
        self._owners: dict[str, str] = {}
        for key in keys:
            self._owners.setdefault(key.key_id, key.machine)
            self._keys.setdefault(key.machine, []).append((key, verifying_key(key.line)))

    def keys_of(self, machine: str, at: int | None = None, now: float = 0.0) -> Sequence[VerifyingKey]:
        """Valid keys of the machine, also those that were valid at `at` (ms); none if it is unknown."""
        return tuple(key for registered, key in self._keys.get(machine, ()) if registered.was_valid(at, now))

    def owner(self, key_id: str) -> str | None:
        """The machine with this key, to tell theft from noise."""
        return self._owners.get(key_id)


def receive(message: Message, ring: KeysOfRevision, *, now: float, zone: tzinfo) -> Received | ReceivedCalendar:
    """A verified closure. Raises MessageRefused. `now` in seconds since 1970; times are checked for HTTPS only,
    because a stream may store a message for long."""
    event = content_of(message, MAX_BYTES, _read)
    nim = event.nim
    if message.headers.get(ID, event.id) != event.id:
        raise MessageRefused("malformed", f"{ID} is not the id of the event", nim)
    # The stream may have received it long ago, when its key was valid.
    key = signer(message, ring, machine_of(nim), event.data.key_id, now=now, at=message.at)
    created = instant_millis(event.data.created_at, "data.created_at")
    of_both: dict[str, Any] = {"message": message, "machine": machine_of(nim), "created_at": created, "key_id": key.id}
    if isinstance(event, ClosureEvent):
        return Received(data=event.data, record=record_of(event.data), day=day_of(created, zone), **of_both)
    return ReceivedCalendar(data=event.data, **of_both)


def signer(
    message: Message, ring: KeysOfRevision, machine: str, key_id: str, *, now: float, at: int | None = None
) -> VerifyingKey:
    """The machine's key that signed the message, which is or was valid at `at` (ms). Raises MessageRefused if none
    did."""
    keys = ring.keys_of(machine, at, now)
    if not keys:
        raise MessageRefused("unknown", "no key is known for this NIM", machine)
    try:
        return verify(keys, message.headers, message.body, now=now, window=300 if message.via == "https" else None)
    except WrongTime as error:
        raise MessageRefused("time", str(error), machine) from None
    except NotSigned as error:
        owner = ring.owner(key_id)
        if owner is not None and owner != machine:
            raise MessageRefused("foreign", f"names a key of {owner}", machine) from None
        raise MessageRefused("unsigned", str(error), machine) from None


def content_of(message: Message, most: int, read: Callable[[bytes], Content]) -> Content:
    """The decoded body. Raises MessageRefused if it is invalid or has another NIM than the one authenticated by
    NATS."""
    if message.damage:
        raise MessageRefused("malformed", message.damage, message.nim or "")
    if len(message.body) > most:
        raise MessageRefused("oversized", f"larger than {most} bytes", message.nim or "")
    try:
        found = read(message.body)
    except BadEvent as error:
        raise MessageRefused("malformed", str(error), message.nim or "") from None
    if message.nim is not None and machine_of(message.nim) != machine_of(found.nim):
        raise MessageRefused("foreign", f"came on the subject of {message.nim} and says {found.nim}", found.nim)
    return found


def _read(body: bytes) -> ClosureEvent | CalendarEvent:
    return read_calendar(body) if is_calendar(body) else read_closure(body)


def day_of(at: int, zone: tzinfo) -> str:
    """The shop's day of an instant in ms, as YYYY-MM-DD."""
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    try:
        return (instant.astimezone(zone) - DAY_BEGINS).date().isoformat()
    except OverflowError:  # within hours of the year 1 or 9999
        return instant.date().isoformat()
