"""What became of a request that had an Idempotency-Key, without any risk of certifying (decision 36)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from daemon.core.call import key_hash_of
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.phases import Phase
from daemon.store.tables.book import request_keys
from daemon.usecases.worker.machine_worker import MachineWorker

RequestStatus = Literal["waiting", "on_the_line", "in_doubt", "certified", "refused", "abandoned", "answered"]
_UNDER_WAY: dict[Phase, RequestStatus] = {
    Phase.INTENDING: "waiting",
    Phase.PREPARED: "waiting",
    Phase.ON_THE_LINE: "on_the_line",
    Phase.ENDING: "on_the_line",
}


class FoundRequest(NamedTuple):
    """`record` is the attempt it began, if it is durable."""

    status: RequestStatus
    record: Record | None = None


async def find_request(worker: MachineWorker, key: str) -> FoundRequest | None:
    """None for a key that is not known, or whose request changed nothing: it was refused before anything was stored."""
    key_hash = key_hash_of(key)
    use = worker.ledger.peek(request_keys.find_key, worker.book, key_hash, failed=True)
    runs = worker.attempts.of_key(key_hash) is not None
    if use is None:
        return FoundRequest("waiting") if runs else None
    record = use.record
    if record is None:
        return FoundRequest("answered")
    match record.state:
        case "certified":
            return FoundRequest("certified", record)
        case "refused" | "abandoned":
            return FoundRequest("waiting") if runs else FoundRequest(record.state, record)
    live = worker.attempts.find(record.number)
    is_its = live is not None and live.id in (0, record.id)
    return FoundRequest(_UNDER_WAY.get(live.phase, "in_doubt") if live and is_its else "in_doubt", record)
