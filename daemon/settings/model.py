"""The keys of the configuration, each with its meaning; `mcfd config doc` is made from this file."""

from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from common.language import Text
from common.one_line import NOT_BLANK
from common.settings import Section
from common.sockets import is_loopback
from common.wire.upstream_kinds import UpstreamKindName
from daemon.core.clock import zone
from daemon.core.invoice.number import NumberScope, Series
from daemon.core.invoice.request import LONGEST_DEFAULT
from daemon.core.invoice.rules import Rules
from daemon.core.ledger.outage import LIMIT
from daemon.core.machine.state import same_machine, short_nim
from daemon.settings import paper
from daemon.settings.paper import LABELS, Company, Invoices, Language, Numbering, Printer, StampDutySection, rules_of

Name = Annotated[str, msgspec.Meta(min_length=1)]
Printable = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_DEFAULT, pattern=NOT_BLANK)]
DestinationName = Annotated[str, msgspec.Meta(max_length=40, pattern=r"^([A-Za-z0-9][\w.-]*)?\Z")]
Url = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+(/\S*)?\Z")]
Subject = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[\w-]+(\.[\w-]+)*\Z")]
PortNumber = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Date = Annotated[str, msgspec.Meta(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\Z")]
Baudrate = Annotated[int, msgspec.Meta(ge=300, le=4_000_000)]
Megabytes = Annotated[int, msgspec.Meta(ge=1, le=1_048_576)]
Waiting = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Delay = Annotated[float, msgspec.Meta(ge=0, le=60)]
Patience = Annotated[float, msgspec.Meta(gt=0, le=600)]
Timeout = Annotated[float, msgspec.Meta(gt=0, le=600)]
RecordingSize = Annotated[int, msgspec.Meta(ge=0, le=1024)]
NameBytes = Annotated[int, msgspec.Meta(ge=0, le=200)]
OutageAfter = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Tries = Annotated[int, msgspec.Meta(ge=1, le=10)]
RetryMax = Annotated[float, msgspec.Meta(ge=1, le=86_400)]
RELOADED = ("upstream", "webhook", "logs.level")
"""Sections and keys that a reload (SIGHUP) applies; all others need a restart."""
EventType = Literal[
    "cert.issued",
    "cert.deferred",
    "cert.refused",
    "cert.in_doubt",
    "mcf.connected",
    "mcf.disconnected",
    "mcf.slow",
    "closure.created",
    "mcf.attention",
    "taxserver.alert",
    "printer.failed",
    "machine.outage",
    "machine.back",
]


class Place(str):
    """Location of a machine: the path of a tty, or `tcp://host:port` or `rfc2217://host:port`."""

    __slots__ = ()
    EXPECTED = Text("a path, tcp://host:port or rfc2217://host:port")

    @property
    def is_network(self) -> bool:
        return "://" in self

    @property
    def path(self) -> Path:
        return Path(self)


class Server(Section, frozen=True):
    host: Name = "127.0.0.1"
    """Address to listen on; `0.0.0.0` is every address of the box. Anything beyond loopback needs `tls`, or `tls_cert`
    and `tls_key`, or `allow_plain_lan`, and is served by HAProxy (docs/network.md)."""
    port: PortNumber = 8480
    """TCP port; 0 takes a free one, which the start's log line names."""
    proxy: Literal["auto", "always", "never"] = "auto"
    """HAProxy in front (docs/network.md): `auto` beyond loopback and with HTTPS; `always`; `never`, for plain HTTP."""
    tls: Literal["internal"] | None = None
    """HTTPS by the authority that `mcfd tls init` made; its certificate is renewed by itself (docs/network.md)."""
    tls_folder: Path | None = None
    """Where that authority keeps its files; left out, `tls` beside the ledger."""
    tls_cert: Path | None = None
    """Certificate chain (PEM) for HTTPS; goes with `tls_key`. What is in the two files is read again on reload."""
    tls_key: Path | None = None
    """Private key (PEM) of `tls_cert`; may be a systemd credential (docs/configuration.md)."""
    allow_plain_lan: bool = False
    """Listen beyond loopback without TLS. API keys then cross the network in clear."""
    announce: bool = True
    """Tell the shop's network where the box is (`_mcfd._tcp`, docs/network.md), where it listens beyond loopback and
    Avahi is installed."""
    allowed_hosts: tuple[Name, ...] = ()
    """Names allowed in the `Host` header beside `localhost`, this box's own host name and any IP address."""
    allowed_origins: tuple[Name, ...] = ()
    """Origins whose pages may use the API in a browser (CORS), exactly as browsers write them, as
    `"https://till.example"`; left out, no page but this box's own."""
    public_url: Url | None = None
    """Where customers reach this box, as `https://shop.example`: in the QR code of a slip that waits for its
    certification. Left out, as the till did, and no QR code for a till on the box itself."""
    language: Language = "fr"
    """Language of texts for people, as the labels of payment methods."""

    @property
    def has_tls(self) -> bool:
        return bool(self.tls or self.tls_cert)

    @property
    def is_proxied(self) -> bool:
        if self.proxy == "auto":
            return self.has_tls or not is_loopback(self.host)
        return self.proxy == "always"


class Storage(Section, frozen=True):
    path: Path = Path("/var/lib/mcfd/mcfd.sqlite3")
    """The ledger: one SQLite file; its `-wal` and `-shm` lie beside it."""
    reserve_mb: Megabytes = 32
    """MB to stay free on the ledger's file system; with less, certifications are refused (507), before any command."""
    max_size_mb: Megabytes | None = None
    """Largest size (MB) the ledger may grow to; left out, the disk is the limit."""


class Reports(Section, frozen=True):
    aggregation_delay: Delay = 2.0
    """Seconds after its answer at which a certification enters the totals."""
    timezone: Name = "Africa/Ouagadougou"
    """Time zone (IANA name) in which a date of a report's range is a whole day."""
    payment_labels: dict[str, paper.PrintedName] = msgspec.field(default_factory=dict)
    """Labels of the payment methods E V C M B A, as `{ B = "Chèque" }`; others keep the label of `server.language`."""

    @property
    def zone(self) -> tzinfo:
        return zone(self.timezone)


class Habits(Section, frozen=True):
    """What a machine wants otherwise than others; its answers are understood without a setting."""

    code_page: Literal["utf-8", "cp1252"] = "utf-8"
    """How texts are written to it and read from it; `cp1252` is that of Windows."""
    name_bytes: NameBytes = 0
    """Longest name of an item that it takes, in bytes; longer ones are cut. 0: what a frame holds."""
    walk_in: Literal["nothing", "fields"] = "nothing"
    """A customer of whom nothing is known: C3h without data, or with `CC` and empty fields."""
    close_total: Literal["decimals", "whole"] = "decimals"
    """The total that 38h closes with: `15000.00` or `15000`."""
    reply_gap: Timeout = 0.5
    """Seconds that a reply may pause in its middle."""
    specific_tax_ht: Literal["separate", "folded"] = "separate"
    """A specific tax in HT mode: certified as its own amount, with VAT on it; or, for a machine that has no VAT on it,
    folded into the price."""
    line_decimals: Literal[0, 2] = 0
    """Decimals of a line's amount in HT mode (SFE 6.2): 0, each line rounded; or 2, for a machine that takes them."""


class Machine(Section, frozen=True):
    nim: str
    """The NIM, as in the paths of the API: two letters, eight digits, and the activation counter if the machine shows
    one. Another machine on the port is refused (compared up to the dash)."""
    port: Place
    """The serial line: a tty (best the stable `/dev/mcf-…` of the udev rule) or a pseudo-terminal; or, for a machine on
    the network or behind a serial device server, `tcp://host:port` (raw) or `rfc2217://host:port`."""
    timezone: Name = "Africa/Ouagadougou"
    """Time zone (IANA name) of the machine's own clock, where it does not keep this country's time."""
    baudrate: Baudrate = 115_200
    """Speed of the line, bit/s."""
    isf: Printable = "1"
    """ISF of an invoice that names none."""
    operator_id: Printable = "1"
    """Operator of an invoice that names none."""
    operator_name: Printable = "Caisse 1"
    """Operator's name of an invoice that names none."""
    when_out_of_order: Literal["refuse", "defer"] = "refuse"
    """What a till gets while the machine certifies nothing: 503, or, with `defer`, 202 for a sale that is certified
    later, also where it did not send `Prefer: respond-async` (docs/clients.md)."""
    outage_after: OutageAfter = LIMIT
    """Seconds without a machine that can certify after which that is in the register of outages; at once where a till
    was refused (docs/clients.md)."""
    queue_limit: Waiting = 256
    """Requests that may wait for the machine; the next one gets 503."""
    queue_patience: Patience = 25.0
    """Seconds a request waits for its turn before it gets 503."""
    reply_timeout: Timeout = 0.5
    """Seconds to wait for the first byte of an answer."""
    certify_timeout: Timeout = 3.0
    """The same for the command that certifies (38h)."""
    credit_timeout: Timeout = 90.0
    """The same for a credit note, which the machine has checked by the tax server first."""
    tries: Tries = 3
    """Times that one frame is sent before the line counts as lost."""
    recording_mb: RecordingSize = 8
    """MB of what moved on the line last that are kept (docs/first-contact.fr.md), in `recordings` beside the ledger;
    incidents come on top of that. 0 switches the recorder off."""
    spare_for: str | None = None
    """NIM of the machine whose spare this one is: greeted and watched, it certifies nothing until a person decides that
    it takes over (`mcfd machine take-over`, docs/spare.fr.md). Both have the same taxpayer; operator, ISF and
    `when_out_of_order` are those of that machine."""
    enabled: bool = True
    """`false` leaves the line alone: the sandbox works, live keys of this NIM get 503."""
    test_mode: bool = False
    """`true` lets a machine in test mode certify (its codes begin with TESTFACT): what it certifies has no fiscal
    value, and receipts, paper and reports say so. Otherwise it is refused from the first such code on."""
    habits: Habits = Habits()
    """What the machine above wants otherwise than others (docs/first-contact.fr.md); all of it may be left out. It
    stands behind the keys of its `[[machine]]`."""


class Homologation(Section, frozen=True):
    """What the tax authority has approved; all of it may be left out, and then doctor says nothing of it."""

    isf: Printable | None = None
    """The ISF of the approved till software."""
    core_digest: Digest | None = None
    """The digest of its certified core, as `mcfd version` shows it. Doctor warns when another one runs."""
    approved_on: Date | None = None
    """The day of the approval, YYYY-MM-DD."""


class Sandbox(Section, frozen=True):
    enabled: bool = True
    """Whether `ak_test_` keys work: a simulated machine behind each NIM, stored apart from the live."""
    max_size_mb: Megabytes = 256
    """What the records of each sandbox may take (MB), 90 days at most; the oldest go first."""


class Upstream(Section, frozen=True):
    kind: UpstreamKindName
    """How closures leave: signed webhooks, or NATS JetStream."""
    url: Name
    """Where to: `https://…` for https; `nats://…` or `tls://…` for nats, several servers with commas."""
    secret_file: Path | None = None
    """File with one line `whsec_<base64>` (24 to 64 bytes), which signs each event (`v1`, HMAC-SHA256)."""
    key_file: Path | None = None
    """Private key made by `mcfd upstream keygen`, which signs each event (`v1a`, Ed25519); with `secret_file` set too,
    both sign. nats: left out, the key in `credentials_file` signs."""
    credentials_file: Path | None = None
    """nats: the credentials file (`.creds`)."""
    tls_ca: Path | None = None
    """Certificates (PEM) to trust instead of the system's own."""
    subject_prefix: Subject = "mcf"
    """nats: first word of the subject `<prefix>.<NIM>.closure`."""
    retry_max: RetryMax = 300.0
    """Seconds between two tries at the most."""
    allow_plain_http: bool = False
    """https: let `url` be plain `http://` beyond loopback."""
    include_sandbox: bool = False
    """Send closures of the sandbox too."""
    receipt: bool = False
    """https: an answer counts only with a receipt for the event, so a login page is no delivery (docs/upstream.md)."""
    presence: bool = True
    """Say every five minutes that this box is there and how it is: no amounts, no customers (docs/upstream.md)."""
    box: paper.Line = ""
    """Name of this box in the events; left out, the NIM."""


class Webhook(Section, frozen=True):
    url: Name
    """Where events are sent, `https://…`; no two sections have the same."""
    secret_file: Path
    """File with one line, the secret that signs each event."""
    events: tuple[EventType, ...] = ()
    """The types of events to send; left out, all of them."""
    tls_ca: Path | None = None
    """Certificates (PEM) to trust instead of the system's own."""
    retry_max: RetryMax = 300.0
    """Seconds between two tries at the most."""
    allow_plain_http: bool = False
    """Let `url` be plain `http://` beyond loopback."""
    include_sandbox: bool = False
    """Send what happens in the sandbox too."""
    receipt: bool = False
    """An answer counts only with a receipt for the event: no login page passes for a delivery (docs/clients.md)."""
    name: DestinationName = ""
    """Its name in `mcfd upstream status` and in metrics, by which its events wait for it, whatever becomes of its
    address; left out, the host and port of `url`."""

    @property
    def destination(self) -> str:
        return self.name or urlsplit(self.url).netloc


class Backup(Section, frozen=True):
    """Either key adds the whole box to the nightly backup, and to a stick called MCFD when it is plugged in."""

    recipients: tuple[Name, ...] = ()
    """Who can open backups of the whole box: public keys `age1…`, as `mcfd backup --new-key` makes them."""
    passphrase_file: Path | None = None
    """File with one line, the passphrase that opens them (256 MB at the most); only without `recipients`."""


class Logs(Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least weight of what is logged."""
    format: Literal["auto", "json", "console"] = "auto"
    """`json`: one object a line; `console`: for eyes; `auto`: `console` on a terminal, else `json`."""


class Settings(Section, frozen=True):
    """The whole file."""

    server: Server = Server()
    """The HTTP service."""
    storage: Storage = Storage()
    """The ledger."""
    reports: Reports = Reports()
    """Totals and periods."""
    invoices: Invoices = Invoices()
    """What the law leaves to tables."""
    stamp_duty: StampDutySection = StampDutySection()
    """Stamp duty on payments in cash."""
    numbering: Numbering = Numbering()
    """Numbers that the box gives."""
    machine: tuple[Machine, ...] = ()
    """One section for each fiscal machine; at least one. They do not hinder one another."""
    sandbox: Sandbox = Sandbox()
    """The simulated machines behind test keys."""
    upstream: Upstream | None = None
    """Where closures go (docs/upstream.md). Left out: to the headquarters that was joined (`mcfd upstream join`), else
    they stay in the outbox."""
    webhook: tuple[Webhook, ...] = ()
    """One section for each receiver of events of tills and screens."""
    homologation: Homologation = Homologation()
    company: Company = Company()
    """What stands on invoices and reports beside what the machine knows of the company."""
    printer: Printer | None = None
    """The receipt printer of this box. Left out: documents are fetched, and printed elsewhere."""
    backup: Backup | None = None
    """Encrypted backups of the whole box (`mcfd backup --all`). Left out: the nightly one is of the ledger."""
    logs: Logs = Logs()
    """What the daemon writes to stderr."""
    file: Path | None = None
    """Where it was read from, to be read again on SIGHUP; not a key."""

    def payment_labels(self) -> dict[str, str]:
        """A label for each of the letters E V C M B A."""
        return self.labels_in(self.server.language)

    def labels_in(self, language: Language) -> dict[str, str]:
        """The same in that language; labels in the configuration take precedence."""
        return {**LABELS[language], **self.reports.payment_labels}

    @property
    def series(self) -> Series | None:
        """None if tills send the numbers."""
        numbering = self.numbering
        return Series(numbering.pattern, numbering.digits, self.reports.zone) if numbering.enabled else None

    @property
    def number_scope(self) -> NumberScope:
        return NumberScope(self.reports.zone if self.numbering.unique == "year" else None)

    @property
    def rules(self) -> Rules:
        return rules_of(self.invoices, self.stamp_duty)

    @property
    def tls_home(self) -> Path:
        """The internal authority's folder; it may not exist."""
        return self.server.tls_folder or self.storage.path.parent / "tls"

    @property
    def joined_home(self) -> Path:
        """The folder of a joined headquarters (daemon/settings/source.py); it may not exist."""
        return self.storage.path.parent / "headquarters"

    def recordings_of(self, nim: str) -> Path:
        """The folder of that machine's recordings, the same for each of its activations; it may not exist."""
        return self.storage.path.parent / "recordings" / short_nim(nim)

    def find_machine(self, nim: str | None) -> Machine | None:
        """By NIM, with or without its suffix; without one, the only machine."""
        if not nim:
            return self.machine[0] if len(self.machine) == 1 else None
        return next((machine for machine in self.machine if same_machine(machine.nim, nim)), None)

    def first_of(self, spare: Machine) -> Machine | None:
        """The machine that a spare may replace."""
        return self.find_machine(spare.spare_for) if spare.spare_for else None

    def spare_of(self, machine: Machine) -> Machine | None:
        found = (each for each in self.machine if each.spare_for and same_machine(each.spare_for, machine.nim))
        return next(found, None)

    def destinations(self) -> dict[str, frozenset[str]]:
        """Events by destination of the outbox: closures upstream, and those of each webhook."""
        webhooks = {webhook.destination: frozenset(webhook.events or get_args(EventType)) for webhook in self.webhook}
        return {"upstream": frozenset({"closure.created"}), **webhooks}

    def live_only(self) -> frozenset[str]:
        """Destinations without events of a sandbox. (For upstream this is decided when it is sent.)"""
        return frozenset(webhook.destination for webhook in self.webhook if not webhook.include_sandbox)
