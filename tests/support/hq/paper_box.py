"""A box without a machine: closures as `common.wire` wants them, chained and signed, and presences."""

import hashlib
import time
import uuid
from typing import Any

from support.receivers.vectors import closure as next_closure
from support.receivers.vectors import event_of

from common.wire.closure import ClosureData
from common.wire.instants import instant_text
from common.wire.keys import PrivateKey
from common.wire.presence import TYPE, Presence, encode_presence
from common.wire.signing import sign

EVENING = 1_765_044_000_000  # 2025-12-06T18:00:00Z
DAY = 86_400_000


class PaperBox:
    """`close` makes the next closure; `forget` puts its ledger back to an earlier one."""

    def __init__(self, nim: str = "EL02000015-1", key: PrivateKey | None = None, seed: str = "") -> None:
        self.nim = nim
        self.seed = seed or nim
        self.key = key or PrivateKey(hashlib.sha256(self.seed.encode()).digest())
        self.ledger = self._id("ledger")
        self.epoch = 0
        self.closures: list[ClosureData] = []

    def _id(self, name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.seed}/{name}"))

    def close(self, sales: int = 2, at: int | None = None, **changes: Any) -> ClosureData:
        last = self.closures[-1] if self.closures else None
        z = last.z_number + 1 if last else 1
        if at is None:
            at = EVENING + (z - 1) * DAY
        name = f"z{z}" if not self.epoch else f"z{z}.{self.epoch}"
        own: dict[str, Any] = {
            "nim": self.nim,
            "ledger_id": self.ledger,
            "key_id": self.key.id,
            "report_id": self._id(name),
            "created_at": instant_text(at),
            "period_start": instant_text(at - DAY),
            "period_end": instant_text(at),
        }
        if last is None:
            own["opening_counters"] = None
        entry = f"{self.seed}{name}" if sales else ""
        closure = next_closure(name, last, sales=sales, entry=entry, epoch=self.epoch, **{**own, **changes})
        self.closures.append(closure)
        return closure

    def forget(self, z: int) -> None:
        """The ledger is put back to that Z, from a backup."""
        self.closures = [closure for closure in self.closures if closure.z_number <= z]
        self.epoch += 1

    def sent(
        self, closure: ClosureData, now: int | None = None, key: PrivateKey | None = None
    ) -> tuple[dict[str, str], bytes]:
        """Headers and body, as they go."""
        body = event_of(closure)
        return sign([key or self.key], closure.report_id, int(now or time.time()), body), body

    def presence(self, at: int | None = None, **changes: Any) -> Presence:
        last = self.closures[-1] if self.closures else None
        figures: dict[str, Any] = (
            {"z": last.z_number, "z_head": last.chain_head[:16], "seq": last.last_seq} if last else {}
        )
        return Presence(
            type=TYPE,
            nim=self.nim,
            at=instant_text(at if at is not None else time.time_ns() // 1_000_000),
            version="1.0.0",
            key=self.key.id,
            epoch=self.epoch,
            **{
                "boot": "0badcafe",
                "ledger": self.ledger,
                "connected": True,
                "tax_days": 0,
                "disk": 9000,
                **figures,
                **changes,
            },
        )

    def sent_presence(self, presence: Presence, now: int | None = None) -> tuple[dict[str, str], bytes]:
        body = encode_presence(presence)
        return sign([self.key], str(uuid.uuid4()), int(now or time.time()), body), body
