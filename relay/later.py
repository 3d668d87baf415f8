"""Sales for boxes that are off: sealed for the box, stored in the stream CALLS, delivered by the first relay that
reaches the box.

After the box's 202 such a sale is an ordinary deferred sale; its result comes from the box."""

import asyncio
import contextlib
import hashlib
from collections import deque
from http import HTTPStatus
from typing import Final

import msgspec
import structlog

from common.turns import ended
from common.wire.call import (
    IDEMPOTENCY_KEY,
    LATER_SECONDS,
    LaterCall,
    RelayedCall,
    encode,
    prefers_async,
    read_later,
)
from common.wire.errors import BadEvent, NatsError
from common.wire.json_values import canonical_of
from common.wire.keys import seal
from common.wire.nats_client import Msg
from common.wire.nats_headers import CALLS_CONSUMER, CALLS_STREAM, LATER, Acknowledgement
from common.wire.nats_pull import Pull, pulling, run_repeatedly
from relay.boxes import Boxes
from relay.connection import Connection
from relay.problems import BoxAmbiguous, BoxOffline, BoxSilent, QueueFull, RelayProblem

log = structlog.get_logger(__name__)

MESSAGE_ID: Final = "Nats-Msg-Id"
DIGEST: Final = "Mcfd-Digest"
"""Of the body's bytes: up to 0.19.0 relays compared these alone."""
VALUES: Final = "Mcfd-Values"
"""Of the body's values."""
ACK_SECONDS: Final = 10.0
MAX_TRIES: Final = 100
"""Publications of one sale; each new one follows a message with the same id that was delivered or expired."""
MAX_ACK: Final = 4096
AT_ONCE: Final = 32
MAX_FETCHED: Final = 64 * 1024 * 1024
"""Bytes of the sales in memory, some 20 000 of the usual size; a box has at most 100 in the stream."""
AGAIN_SECONDS: Final = 30.0
"""Delay before a sale is sent again to a box that was offline."""
AFTER_OTHERS_SECONDS: Final = 60.0
"""Delay of a sale that may have failed by itself: the others of the box come before it."""
DELAYS: Final[dict[type[RelayProblem], float]] = {BoxAmbiguous: 300.0, BoxSilent: AFTER_OTHERS_SECONDS}
FULL: Final = frozenset({10047, 10077})
"""JetStream's error codes for a full stream and a full subject."""
TYPES: Final = frozenset({"FV", "FT"})
"""Invoice types that may wait: a credit note needs the tax server, an export invoice its original."""
RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504, 507})
OWN_BOOT: Final = "sealed"


class InvoiceKind(msgspec.Struct, rename="camel"):
    invoice_type: str = ""


def may_wait(call: RelayedCall) -> bool:
    """Whether this is a sale with `Prefer: respond-async` and a valid Idempotency-Key."""
    path, _, query = call.path.partition("?")
    if call.method != "POST" or not path.endswith("/certify") or query:
        return False
    keys = [value for name, value in call.headers if name == "idempotency-key"]
    if len(keys) != 1 or not IDEMPOTENCY_KEY.fullmatch(keys[0]):
        return False
    if not prefers_async(value for name, value in call.headers if name == "prefer"):
        return False
    try:
        return msgspec.json.decode(call.body, type=InvoiceKind).invoice_type in TYPES
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


class LaterCalls:
    def __init__(self, connection: Connection, boxes: Boxes) -> None:
        self._connection = connection
        self._boxes = boxes

    async def store(self, nim: str, call: RelayedCall, key_id: str, key: str, not_after: int) -> None:
        """Stores the sale until `not_after` (ms since 1970), at most 24 hours. Raises BoxOffline if the box accepts no
        stored sales or does not know the key, QueueFull, and KeyError if another request with this key is stored."""
        last = await self._boxes.presence(nim)
        if last is None or last.lane is None or key_id not in last.lane.key_ids:
            raise BoxOffline
        until = min(not_after, self._boxes.millis() + LATER_SECONDS * 1000)
        inner = msgspec.structs.replace(call, boot=OWN_BOOT, not_after=until, sent_at=self._boxes.millis())
        content = encode(
            LaterCall(not_after=until, sealed=await asyncio.to_thread(seal, encode(inner), last.lane.public))
        )
        values = await asyncio.to_thread(canonical_of, call.body)
        digests = {
            name: hashlib.sha256(b"\n".join((call.path.encode(), body))).hexdigest()
            for name, body in ((DIGEST, call.body), (VALUES, values))
        }
        identity = f"{nim}\n{key_id}\n{key}"
        try:
            for _ in range(MAX_TRIES):
                ack = await self._published(nim, identity, digests, content)
                if not ack.duplicate or await self._is_waiting(ack.seq, digests, until):
                    log.info("later.kept", nim=nim, duplicate=ack.duplicate)
                    return
                identity += f"\n{ack.seq}"
        except (NatsError, BadEvent, msgspec.MsgspecError) as error:
            log.warning("later.not_kept", nim=nim, reason=str(error))
            raise BoxOffline from None  # a retry with the same key is stored only once
        raise QueueFull

    async def _published(self, nim: str, identity: str, digests: dict[str, str], content: bytes) -> Acknowledgement:
        headers = {MESSAGE_ID: hashlib.sha256(identity.encode()).hexdigest(), **digests}
        msg = await self._connection.client.request(f"mcf.{nim}.{LATER}", content, ACK_SECONDS, headers, MAX_ACK)
        ack = msgspec.json.decode(msg.data, type=Acknowledgement)
        if ack.error is not None:
            log.warning("later.refused", nim=nim, reason=ack.error.description)
            raise QueueFull if ack.error.err_code in FULL else BoxOffline
        return ack

    async def _is_waiting(self, seq: int, digests: dict[str, str], until: int) -> bool:
        """Whether the stored message `seq` still waits, with at least half of the new one's remaining time. False
        after its delivery: the result is unknown here, and the box compares the requests. Raises KeyError if it is
        another request."""
        msg = await self._connection.client.request(
            f"$JS.API.DIRECT.GET.{CALLS_STREAM}", msgspec.json.encode({"seq": seq}), ACK_SECONDS
        )
        if msg.headers.status:
            return False
        is_same = any(msg.headers.get(name) == digest for name, digest in digests.items())
        if not is_same and msg.headers.get(DIGEST) is not None:
            raise KeyError(seq)
        now = self._boxes.millis()
        return 2 * (read_later(msg.data).not_after - now) >= until - now

    async def run(self) -> None:
        """Delivers stored sales until cancelled."""
        await run_repeatedly(self._read_stream, (), "later.not_readable")

    async def _read_stream(self) -> None:
        with contextlib.suppress(BoxOffline):  # the connection was lost again
            client = await self._connection.opened()
            async with pulling(client, CALLS_STREAM, CALLS_CONSUMER, AT_ONCE) as pull:
                await self._deliver(pull)

    async def _deliver(self, pull: Pull) -> None:
        """Delivers the sales of each box in their order, those of different boxes independently: one that does not
        answer delays no other."""
        by_subject: dict[str, deque[Msg]] = {}
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                for msg in await pull.next_messages():
                    if msg.subject in by_subject:
                        by_subject[msg.subject].append(msg)
                        continue
                    by_subject[msg.subject] = deque([msg])
                    task = asyncio.get_running_loop().create_task(self._hand_over(msg.subject, by_subject))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                while sum(msg.size for messages in by_subject.values() for msg in messages) >= MAX_FETCHED:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pull.return_rest()  # at a stop; spares them the `ack_wait`
            await ended(*tasks)

    async def _hand_over(self, subject: str, by_subject: dict[str, deque[Msg]]) -> None:
        """Delivers the sales of one box until none is left, also those that are added meanwhile. After a failure all of
        them come again later, those that were not tried first."""
        words = subject.split(".")
        nim = words[1] if len(words) == 3 else ""  # noqa: PLR2004  # mcf.<NIM>.later
        left, wait, again = by_subject[subject], 0.0, AGAIN_SECONDS
        try:
            while left and not wait:
                wait = await self._tried(nim, left[0])
                msg = left.popleft()
                if wait:
                    msg.nak(wait)
                else:
                    msg.ack()
        except asyncio.CancelledError:
            again = 0.0
            raise
        except NatsError:
            pass  # the connection is lost: they come again after the `ack_wait`
        except Exception:
            log.exception("later.failed", nim=nim)
        finally:
            del by_subject[subject]
            with contextlib.suppress(NatsError):
                for msg in left:
                    msg.nak(again)

    async def _tried(self, nim: str, msg: Msg) -> float:
        """Sends one stored sale. Returns the delay in seconds before the next attempt; 0 if the box accepted it or
        refused it for good."""
        try:
            later = read_later(msg.data)
        except BadEvent as error:
            log.warning("later.unreadable", nim=nim, reason=str(error))
            return 0
        if later.not_after <= self._boxes.millis():
            log.info("later.expired", nim=nim)
            return 0
        try:
            reply = await self._boxes.ask(
                nim, RelayedCall(boot="", not_after=self._boxes.limit(), sent_at=0, sealed=later.sealed)
            )
        except RelayProblem as problem:
            return DELAYS.get(type(problem), AGAIN_SECONDS)
        if reply.status in RETRIED:
            return AFTER_OTHERS_SECONDS
        if reply.status >= HTTPStatus.BAD_REQUEST:  # its key was revoked meanwhile, for one
            log.warning("later.not_accepted", nim=nim, status=reply.status)
        else:
            log.info("later.handed_over", nim=nim, status=reply.status)
        return 0
