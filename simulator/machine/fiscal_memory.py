"""The fiscal memory, which survives a power cut: counters, last invoice, last day of work, and the state of the
transfer to the tax server."""

from base64 import b32encode
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import blake2b

import msgspec

from simulator.machine.command_data import CommentData, CustomerData, ItemData, Opening, PaymentData
from simulator.machine.options import SimulatorOptions, digits14

TEST_PREFIX = "TESTFACT"


class RememberedInvoice(msgspec.Struct, frozen=True):
    """`total` in whole francs, `time` in 14 digits, `code` without dashes."""

    number: str
    code: str
    time: str
    type: str
    total: int


class Snapshot(msgspec.Struct, frozen=True):
    """`active_day` (`YYYYMMDD`): day of the last invoice while its daily report is outstanding, or empty; `by_type`
    counts invoices by type."""

    tc: int = 0
    fvc: int = 0
    frc: int = 0
    last: RememberedInvoice | None = None
    active_day: str = ""
    acknowledged: int = 0
    last_contact: str = ""
    server_error: str = ""
    by_type: dict[str, int] = {}


class CertifiedInvoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Log entry of one certified invoice, for tests; `foreign`: made by a fault, not by our client."""

    tc: int
    fvc: int
    frc: int
    number: str
    type: str
    total: int
    code: str
    time: str
    foreign: bool = False
    opening: Opening | None = None
    customer: CustomerData | None = None
    lines: tuple[ItemData, ...] = ()
    comments: tuple[CommentData, ...] = ()
    payments: tuple[PaymentData, ...] = ()


class FiscalMemory:
    """`revision` grows with every change that must survive; `on_certified` is called with each invoice first."""

    def __init__(self, options: SimulatorOptions) -> None:
        self.options = options
        self.revision = 0
        self.reachable = True
        self.server_state = "DIS"
        self.log: deque[CertifiedInvoice] = deque(maxlen=options.log_limit)
        self.on_certified: Callable[[CertifiedInvoice], None] | None = None
        self._next_contact: datetime | None = None
        self.restore(Snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        self.tc, self.fvc, self.frc = snapshot.tc, snapshot.fvc, snapshot.frc
        self.last = snapshot.last
        self.active_day = snapshot.active_day
        self.acknowledged = snapshot.acknowledged
        self.last_contact = snapshot.last_contact
        self.server_error = snapshot.server_error
        self.by_type = dict(snapshot.by_type)
        self.revision += 1

    def snapshot(self) -> Snapshot:
        link = (self.acknowledged, self.last_contact, self.server_error)
        return Snapshot(self.tc, self.fvc, self.frc, self.last, self.active_day, *link, dict(self.by_type))

    def tick(self, now: datetime, *, idle: bool) -> None:
        """Actions without a command: the report of a past day, and the contact with the tax server."""
        if idle and self.active_day and self.active_day != digits14(now)[:8]:
            self.tc += 1
            self.active_day = ""
            self.revision += 1
        if self.reachable and (self._next_contact is None or now >= self._next_contact):
            self.contact(now)

    def contact(self, now: datetime) -> None:
        self.acknowledged = self.tc
        self.last_contact = digits14(now)
        self.server_error = ""
        self._next_contact = now + timedelta(seconds=self.options.server_interval)
        self.revision += 1

    def certify(self, number: str, invoice_type: str, total: int, now: datetime) -> RememberedInvoice:
        """Numbers the transaction; `remember` adds the log entry, since only the machine has the invoice's content."""
        self.tc += 1
        self.by_type[invoice_type] = self.by_type.get(invoice_type, 0) + 1
        if invoice_type in ("FA", "EA"):
            self.frc += 1
        elif invoice_type in ("FV", "FT") or not self.options.fvc_local:
            self.fvc += 1
        time = digits14(now)
        self.last = RememberedInvoice(number, self._code(number, time), time, invoice_type, total)
        self.active_day = time[:8]
        self.revision += 1
        return self.last

    def remember(self, entry: CertifiedInvoice) -> None:
        self.log.append(entry)
        if self.on_certified:
            self.on_certified(entry)

    def counter_of(self, invoice_type: str) -> int:
        """The FC of that invoice type."""
        if self.options.fc_per_type:
            return self.by_type.get(invoice_type, 0)
        return self.frc if invoice_type in ("FA", "EA") else self.fvc

    def _code(self, number: str, time: str) -> str:
        """Unique on one machine, since it contains TC."""
        seed = f"{self.options.nim}\0{self.tc}\0{number}\0{time}".encode()
        if self.options.test_mode:
            return TEST_PREFIX + b32encode(blake2b(seed, digest_size=10).digest()).decode()
        return b32encode(blake2b(seed, digest_size=15).digest()).decode()
