"""What became of a request that had an Idempotency-Key, without any risk of certifying (decision 36)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from daemon.core.call import key_hash_of
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import KeyUse
from daemon.core.ledger.deferred import DeferredSale, DeferredState
from daemon.core.ledger.phases import Phase
from daemon.store.tables.book import attempts, deferred, request_keys
from daemon.usecases.worker.machine_worker import MachineWorker

RequestStatus = Literal["waiting", "on_the_line", "in_doubt", "certified", "refused", "abandoned", "answered"]
_UNDER_WAY: dict[Phase, RequestStatus] = {
    Phase.INTENDING: "waiting",
    Phase.PREPARED: "waiting",
    Phase.ON_THE_LINE: "on_the_line",
    Phase.ENDING: "on_the_line",
}

_WAITING: dict[DeferredState, RequestStatus] = {"waiting": "waiting", "doubtful": "in_doubt"}
_ENDED: dict[DeferredState, RequestStatus] = {
    "begun": "in_doubt",
    "certified": "certified",
    "refused": "refused",
    "withdrawn": "abandoned",
}


class FoundRequest(NamedTuple):
    """`record` is the attempt it began, if it is durable; `sale` where it is or was to be certified later."""

    status: RequestStatus
    record: Record | None = None
    sale: DeferredSale | None = None


async def find_request(worker: MachineWorker, key: str) -> FoundRequest | None:
    """None for a key that is not known, or whose request changed nothing: it was refused before anything was stored."""
    key_hash = key_hash_of(key)
    sale = worker.ledger.peek(deferred.by_key, worker.book, key_hash)
    if sale is not None and sale.state in _WAITING:
        return FoundRequest(_WAITING[sale.state], sale=sale)
    use = worker.ledger.peek(request_keys.find_key, worker.book, key_hash, failed=True)
    if use is not None and use.sale is not None:  # its attempt is under way
        use = KeyUse(use.fingerprint, worker.ledger.peek(attempts.find_record, worker.book, use.sale.attempt_id))
    runs = worker.attempts.of_key(key_hash) is not None
    if use is None and sale is not None and not runs:
        record = worker.ledger.peek(attempts.find_record, worker.book, sale.attempt_id) if sale.attempt_id else None
        return FoundRequest(_ENDED[sale.state], record, sale)
    if use is None:
        return FoundRequest("waiting") if runs else None
    found = _of_use(worker, use, runs=runs)
    is_its = sale is not None and found.record is not None and found.record.id == sale.attempt_id
    return found._replace(sale=sale) if is_its else found


def _of_use(worker: MachineWorker, use: KeyUse, *, runs: bool) -> FoundRequest:
    record = use.record
    if record is None:
        return FoundRequest("answered")
    match record.state:
        case "certified":
            return FoundRequest("certified", record)
        case "refused" | "abandoned":
            return FoundRequest("waiting") if runs else FoundRequest(record.state, record)
    owner = worker.worker_of(record.id)
    live = owner.attempts.find(record.number) if owner else None
    is_its = live is not None and live.id in (0, record.id)
    return FoundRequest(_UNDER_WAY.get(live.phase, "in_doubt") if live and is_its else "in_doubt", record)
