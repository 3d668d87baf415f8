"""Calls to boxes: selects the running daemon, detects duplicates of a box, sends each request at most once (decision
46).

The last presence of a NIM, in the stream PRESENCE, names the daemon's run (`boot`). Before the first call all
listeners on the subject report their boot, which detects two boxes with one identity before either is called. Later
the second box is detected by its reply to any call."""

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
import structlog

from common.wire.call import ANSWER_SECONDS, MAX_REPLY, RelayedCall, RelayedReply, encode, read_reply
from common.wire.closure import NIM
from common.wire.errors import BadEvent, NatsError, NoAnswer
from common.wire.keys import LaneHeader
from common.wire.nats_client import NO_RESPONDERS, Answers, Msg
from common.wire.nats_headers import CALL, LANE, PRESENCE, PRESENCE_STREAM
from common.wire.presence import read_presence
from relay.connection import Connection
from relay.problems import BoxAmbiguous, BoxOffline, BoxSilent, TooManyCalls

log = structlog.get_logger(__name__)

OF_ONE_NIM: Final = 8
"""Concurrent calls of this relay to one box; the box itself counts the calls of all relays."""
WHO_SECONDS: Final = 1.0
"""Time for replies to the inquiry which boxes listen."""
WATCH_SECONDS: Final = 5.0
"""After this time without an answer the relay checks that the box is still there, on the same connection."""
PRESENCE_SECONDS: Final = 5.0
AMBIGUOUS_SECONDS: Final = 60.0
"""After this time the relay checks again whether there are two boxes."""
MAX_PRESENCE: Final = 8192
MAX_BOXES: Final = 20_000
"""Size of the cache of boxes; the oldest entry is dropped and looked up again when needed."""
PAST_BOOTS: Final = 8


class LastPresence(NamedTuple):
    boot: str
    lane: LaneHeader | None


class BoxRecord(msgspec.Struct):
    """`line` is the box's last known connection. `ahead`: the box's monotonic clock minus this relay's, in
    milliseconds; None where the box says none. `past` are boots that were replaced by a newer one; if one of them
    replies again, there is a second box."""

    boot: str = ""
    line: str = ""
    ahead: int | None = None
    generation: int = 0
    ambiguous_until: float = 0.0
    past: deque[str] = msgspec.field(default_factory=lambda: deque(maxlen=PAST_BOOTS))

    def note(self, reply: RelayedReply) -> None:
        """Takes line and clock of a reply: the time since it was sent makes `ahead` smaller, and a limit earlier."""
        self.line = reply.line
        self.ahead = reply.clock - _loop_millis() if reply.clock else None


class Boxes:
    """`seconds` is the time limit for an answer, and for the start of a call in the box."""

    def __init__(
        self, connection: Connection, now: Callable[[], float] = time.time, seconds: float = ANSWER_SECONDS
    ) -> None:
        self._connection = connection
        self._seconds = seconds
        self._now = now
        self._boxes: OrderedDict[str, BoxRecord] = OrderedDict()
        self._looking: dict[str, asyncio.Task[str]] = {}
        self._under_way: Counter[str] = Counter()

    def limit(self) -> int:
        """Deadline for a box to carry out a call that is sent now, in milliseconds since 1970."""
        return self.millis() + int(self._seconds * 1000)

    def millis(self) -> int:
        return int(self._now() * 1000)

    async def ask(self, nim: str, call: RelayedCall) -> RelayedReply:
        """Sends `call` (without a boot) and returns the box's answer. Raises BoxOffline, BoxAmbiguous or TooManyCalls
        if the call was not carried out, BoxSilent if this is unknown."""
        if self._under_way[nim] >= OF_ONE_NIM:
            raise TooManyCalls
        self._under_way[nim] += 1
        try:
            boot = await self._the_one(nim)
            ahead = self._box(nim).ahead
            begin_by = 0 if ahead is None else _loop_millis() + ahead + int(self._seconds * 1000)
            call = msgspec.structs.replace(call, boot=boot, sent_at=self.millis(), begin_by=begin_by)
            return await self._answered(nim, call)
        finally:
            self._under_way[nim] -= 1
            if not self._under_way[nim]:
                del self._under_way[nim]

    async def presence(self, nim: str) -> LastPresence | None:
        """The box's last presence, or None. Raises BoxOffline if the NATS servers do not answer."""
        try:
            msg = await self._connection.client.request(
                f"$JS.API.DIRECT.GET.{PRESENCE_STREAM}.mcf.{nim}.{PRESENCE}", b"", PRESENCE_SECONDS, most=MAX_PRESENCE
            )
        except NatsError as error:
            log.warning("presence.not_readable", reason=str(error))
            raise BoxOffline from None
        try:
            return LastPresence(read_presence(msg.data).boot, LaneHeader.read(msg.headers.get(LANE) or ""))
        except BadEvent:  # the server's 404 has no content
            return None

    async def _the_one(self, nim: str) -> str:
        box = self._box(nim)
        if box.ambiguous_until > self._now():
            raise BoxAmbiguous
        if box.boot and box.generation == self._connection.generation:
            return box.boot
        looking = self._looking.get(nim)
        if looking is None:
            looking = asyncio.get_running_loop().create_task(self._find_boot(nim), name=f"look {nim}")
            self._looking[nim] = looking
            looking.add_done_callback(lambda task: (self._looking.pop(nim, None), task.cancelled() or task.exception()))
        return await asyncio.shield(looking)

    async def _find_boot(self, nim: str) -> str:
        """The boot of the last presence. Raises BoxOffline if it does not listen, BoxAmbiguous if there are two
        boxes."""
        there = await self._who(nim)
        last = await self.presence(_name_now(nim, there))
        box = self._box(nim)
        if len(there) > 1 or any(boot in box.past for boot in there):
            self._two(nim, there.keys())
            raise BoxAmbiguous
        if last is None or there.keys() != {last.boot}:
            raise BoxOffline(2 if there else 5)  # a daemon that has just started publishes its presence in a moment
        if box.boot and box.boot != last.boot:
            box.past.append(box.boot)
        box.boot, box.generation = last.boot, self._connection.generation
        box.note(there[last.boot])
        return last.boot

    def _box(self, nim: str) -> BoxRecord:
        box = self._boxes.setdefault(nim, BoxRecord())
        self._boxes.move_to_end(nim)
        if len(self._boxes) > MAX_BOXES:
            self._boxes.popitem(last=False)
        return box

    def _two(self, nim: str, boots: Iterable[str]) -> None:
        box = self._box(nim)
        box.generation = 0
        box.ambiguous_until = self._now() + AMBIGUOUS_SECONDS
        box.past.clear()
        log.warning("box.ambiguous", nim=nim, boots=sorted(boots))

    async def _who(self, nim: str) -> dict[str, RelayedReply]:
        """Replies of all listeners by boot. Raises BoxOffline if there is no listener or no NATS server."""
        found: dict[str, RelayedReply] = {}
        end = asyncio.get_running_loop().time() + WHO_SECONDS
        try:
            with self._connection.client.exchange(f"mcf.{nim}.{CALL}", b"", most=MAX_REPLY) as answers:
                while (left := end - asyncio.get_running_loop().time()) > 0:
                    msg = await answers.next(left)
                    if msg.headers.status == NO_RESPONDERS:
                        raise BoxOffline
                    if (reply := _read(msg)) is not None:
                        found[reply.boot] = reply
        except NoAnswer:
            pass
        except NatsError:
            raise BoxOffline from None
        return found

    async def _answered(self, nim: str, call: RelayedCall) -> RelayedReply:
        is_sent = False
        try:
            with self._connection.client.exchange(f"mcf.{nim}.{CALL}", encode(call), most=MAX_REPLY) as answers:
                is_sent = True
                return await self._first(nim, call.boot, answers)
        except NatsError:  # nothing was written; or no answer in time, or the connection was lost
            raise (BoxSilent if is_sent else BoxOffline) from None

    async def _first(self, nim: str, boot: str, answers: Answers) -> RelayedReply:
        """The answer of the box with this boot; other replies mark the box for a new look-up."""
        end = asyncio.get_running_loop().time() + self._seconds
        while True:
            left = end - asyncio.get_running_loop().time()
            try:
                msg = await answers.next(min(left, WATCH_SECONDS))
            except NoAnswer:
                if left <= WATCH_SECONDS:
                    raise
                await self._watch(nim, boot, answers)
                continue
            if msg.headers.status == NO_RESPONDERS:
                self._box(nim).generation = 0
                raise BoxOffline
            reply = _read(msg)
            if reply is None:
                continue
            if reply.status and reply.boot == boot:
                self._box(nim).note(reply)
                return reply
            self._box(nim).generation = 0
            await self._watch(nim, boot, answers)

    async def _watch(self, nim: str, boot: str, answers: Answers) -> None:
        """Raises BoxSilent if no answer can come any more: the box has restarted or reconnected, perhaps after it got
        the request, or it carries out no request: this one or its answer was lost, as when nats-server reloads."""
        box = self._box(nim)
        try:
            there = await self._who(nim)
        except BoxOffline:
            there = {boot: RelayedReply(boot=boot)}
        if len(there) > 1:
            self._two(nim, there.keys())
        reply = there.get(boot)
        is_lost = reply is None or reply.line != box.line or reply.under_way == 0
        if there and is_lost and not answers:
            box.line, box.generation = reply.line if reply else "", 0
            raise BoxSilent


def _name_now(nim: str, there: Mapping[str, RelayedReply]) -> str:
    """The NIM under which the only listener publishes its presence: `nim` with the machine's current suffix."""
    names = [reply.nim for reply in there.values()]
    is_another = len(names) == 1 and NIM.fullmatch(names[0]) and names[0].partition("-")[0] == nim.partition("-")[0]
    return names[0] if is_another else nim


def _loop_millis() -> int:
    return int(asyncio.get_running_loop().time() * 1000)


def _read(msg: Msg) -> RelayedReply | None:
    try:
        return read_reply(msg.data)
    except BadEvent as error:
        log.warning("reply.unreadable", reason=str(error))
        return None
