"""The keys of the configuration, each with its meaning; `docs/configuration.md` is made from this file."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from daemon.core.clock import zone
from daemon.core.machine.nim import same_machine
from daemon.settings.backup import Backup
from daemon.settings.paper import LABELS, Company, Language, Printer
from daemon.settings.section import Section, key


class Place(str):
    """Where a machine is: the path of a tty, or `tcp://host:port` or `rfc2217://host:port`."""

    __slots__ = ()

    @property
    def is_network(self) -> bool:
        return "://" in self

    @property
    def path(self) -> Path:
        return Path(self)


Name = Annotated[str, msgspec.Meta(min_length=1)]
Printable = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
LaneName = Annotated[str, msgspec.Meta(max_length=40, pattern=r"^([A-Za-z0-9][\w.-]*)?\Z")]
Subject = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[\w-]+(\.[\w-]+)*\Z")]
PortNumber = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Baudrate = Annotated[int, msgspec.Meta(ge=300, le=4_000_000)]
Megabytes = Annotated[int, msgspec.Meta(ge=1)]
Waiting = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Delay = Annotated[float, msgspec.Meta(ge=0, le=60)]
Patience = Annotated[float, msgspec.Meta(gt=0, le=600)]
Timeout = Annotated[float, msgspec.Meta(gt=0, le=600)]
RecordingSize = Annotated[int, msgspec.Meta(ge=0, le=1024)]
NameBytes = Annotated[int, msgspec.Meta(ge=0, le=200)]
Tries = Annotated[int, msgspec.Meta(ge=1, le=10)]
TlsCa = Annotated[Path | None, key("Certificates (PEM) to trust instead of the system's own.", reload=True)]
RetryMax = Annotated[float, msgspec.Meta(ge=1, le=86_400), key("Seconds between two tries at the most.", reload=True)]
EventType = Literal[
    "cert.issued",
    "mcf.connected",
    "mcf.disconnected",
    "mcf.slow",
    "closure.created",
    "mcf.attention",
    "taxserver.alert",
    "printer.failed",
]


class Server(Section, frozen=True):
    host: Annotated[
        Name,
        key(
            "Address to listen on; `0.0.0.0` is every address of the box. Anything beyond loopback needs "
            "`tls`, or `tls_cert` and `tls_key`, or `allow_plain_lan`."
        ),
    ] = "127.0.0.1"
    port: Annotated[PortNumber, key("TCP port; 0 takes a free one, which the start's log line names.")] = 8480
    tls: Annotated[
        Literal["internal"] | None,
        key(
            "HTTPS by the authority that `mcfd tls init` made; its certificate is renewed by itself (docs/network.md)."
        ),
    ] = None
    tls_folder: Annotated[
        Path | None, key("Where that authority keeps its files; left out, `tls` beside the ledger.")
    ] = None
    tls_cert: Annotated[
        Path | None,
        key(
            "Certificate chain (PEM) for HTTPS; goes with `tls_key`. What is in the two files is read again on reload."
        ),
    ] = None
    tls_key: Annotated[
        Path | None, key("Private key (PEM) of `tls_cert`; may be a systemd credential (see above).")
    ] = None
    allow_plain_lan: Annotated[
        bool,
        key("Listen beyond loopback without TLS. API keys then cross the network in clear."),
    ] = False
    allowed_hosts: Annotated[
        tuple[Name, ...],
        key(
            "Names that tills may use in the `Host` header beside `localhost`, this box's own host name and "
            "any IP address; every other name is refused."
        ),
    ] = ()
    allowed_origins: Annotated[
        tuple[Name, ...],
        key(
            'Origins whose pages may use the API in a browser (CORS), exactly as browsers write them, as `"https://till.example"`; '
            "left out, no page but this box's own."
        ),
    ] = ()
    language: Annotated[Language, key("Language of texts for people, as the labels of payment methods.")] = "fr"


class Storage(Section, frozen=True):
    path: Annotated[Path, key("The ledger: one SQLite file; its `-wal` and `-shm` lie beside it.")] = Path(
        "/var/lib/mcfd/mcfd.sqlite3"
    )
    reserve_mb: Annotated[
        Megabytes,
        key(
            "Room (MB) that has to stay free on the ledger's file system. With less, certifications are "
            "refused (507) before the machine is asked."
        ),
    ] = 32
    max_size_mb: Annotated[
        Megabytes | None, key("Largest size (MB) the ledger may grow to; left out, the disk is the limit.")
    ] = None


class Reports(Section, frozen=True):
    aggregation_delay: Annotated[Delay, key("Seconds after its answer at which a certification enters the totals.")] = (
        2.0
    )
    timezone: Annotated[Name, key("Time zone (IANA name) in which a date of a report's range is a whole day.")] = (
        "Africa/Ouagadougou"
    )
    payment_labels: Annotated[
        dict[str, Name],
        key(
            'Labels for people of the payment methods E V C M B A, as `{ B = "Chèque" }`; letters left out '
            "keep the label of `server.language`."
        ),
    ] = msgspec.field(default_factory=dict)

    @property
    def zone(self) -> tzinfo:
        return zone(self.timezone)


class Habits(Section, frozen=True):
    """What a machine wants otherwise than others; how it answers is understood without being told."""

    code_page: Annotated[
        Literal["utf-8", "cp1252"], key("How texts are written to it and read from it; `cp1252` is that of Windows.")
    ] = "utf-8"
    name_bytes: Annotated[
        NameBytes, key("Longest name of an item that it takes, in bytes; longer ones are cut. 0: what a frame holds.")
    ] = 0
    walk_in: Annotated[
        Literal["nothing", "fields"],
        key("A customer of whom nothing is known: C3h without data, or with `CC` and empty fields."),
    ] = "nothing"
    close_total: Annotated[
        Literal["decimals", "whole"], key("The total that 38h closes with: `15000.00` or `15000`.")
    ] = "decimals"
    reply_gap: Annotated[Timeout, key("Seconds that a reply may pause in its middle.")] = 0.5
    specific_tax_ht: Annotated[
        Literal["separate", "folded"],
        key(
            "A specific tax in HT mode: certified as its own amount, with VAT on it; or, for a machine that has no VAT on it, "
            "folded into the price."
        ),
    ] = "separate"


class Machine(Section, frozen=True):
    nim: Annotated[
        str,
        key(
            "The NIM, as in the paths of the API: two letters, eight digits, and the activation counter if the "
            "machine shows one. Another machine on the port is refused (compared up to the dash)."
        ),
    ]
    port: Annotated[
        Place,
        key(
            "The serial line: a tty (best the stable `/dev/mcf-…` of the udev rule) or a pseudo-terminal; or, for a machine on "
            "the network or behind a serial device server, `tcp://host:port` (raw) or `rfc2217://host:port`."
        ),
    ]
    timezone: Annotated[
        Name, key("Time zone (IANA name) of the machine's own clock, where it does not keep this country's time.")
    ] = "Africa/Ouagadougou"
    baudrate: Annotated[Baudrate, key("Speed of the line, bit/s.")] = 115_200
    isf: Annotated[Printable, key("ISF of an invoice that names none.")] = "1"
    operator_id: Annotated[Printable, key("Operator of an invoice that names none.")] = "1"
    operator_name: Annotated[Printable, key("Operator's name of an invoice that names none.")] = "Caisse 1"
    queue_limit: Annotated[Waiting, key("Requests that may wait for the machine; the next one gets 503.")] = 256
    queue_patience: Annotated[Patience, key("Seconds a request waits for its turn before it gets 503.")] = 25.0
    reply_timeout: Annotated[Timeout, key("Seconds to wait for the first byte of an answer.")] = 0.5
    certify_timeout: Annotated[Timeout, key("The same for the command that certifies (38h).")] = 3.0
    credit_timeout: Annotated[
        Timeout, key("The same for a credit note, which the machine has checked by the tax server first.")
    ] = 90.0
    tries: Annotated[Tries, key("Times that one frame is sent before the line counts as lost.")] = 3
    recording_mb: Annotated[
        RecordingSize,
        key(
            "MB of what moved on the line last that are kept (docs/first-contact.md), in `recordings` beside the ledger; incidents "
            "come on top of that. 0 switches the recorder off."
        ),
    ] = 8
    enabled: Annotated[
        bool, key("`false` leaves the line alone: the sandbox works, live keys of this NIM get 503.")
    ] = True
    test_mode: Annotated[
        bool,
        key(
            "`true` lets a machine in test mode certify (its codes begin with TESTFACT): what it certifies has no fiscal value, and receipts, paper "
            "and reports say so. Otherwise it is refused from the first such code on."
        ),
    ] = False
    habits: Annotated[
        Habits,
        key(
            "What the machine above wants otherwise than others (docs/first-contact.md); all of it may be left out. It "
            "stands behind the keys of its `[[machine]]`."
        ),
    ] = Habits()


class Sandbox(Section, frozen=True):
    enabled: Annotated[
        bool,
        key("Whether `ak_test_` keys work: a simulated machine behind each NIM, stored apart from the live."),
    ] = True
    max_size_mb: Annotated[
        Megabytes, key("What the records of each sandbox may take (MB), 90 days at most; the oldest go first.")
    ] = 256


class Upstream(Section, frozen=True):
    kind: Annotated[
        Literal["https", "nats"], key("How closures leave: signed webhooks, or NATS JetStream.", reload=True)
    ]
    url: Annotated[
        Name,
        key(
            "Where to: `https://…` for https; `nats://…` or `tls://…` for nats, several servers with commas.",
            reload=True,
        ),
    ]
    secret_file: Annotated[
        Path | None,
        key(
            "File with one line `whsec_<base64>` (24 to 64 bytes), which signs each event (`v1`, HMAC-SHA256).",
            reload=True,
        ),
    ] = None
    key_file: Annotated[
        Path | None,
        key(
            "Private key made by `mcfd upstream keygen`, which signs each event (`v1a`, Ed25519); with `secret_file` set too, both sign. "
            "nats: left out, the key in `credentials_file` signs.",
            reload=True,
        ),
    ] = None
    credentials_file: Annotated[Path | None, key("nats: the credentials file (`.creds`).", reload=True)] = None
    tls_ca: TlsCa = None
    subject_prefix: Annotated[
        Subject, key("nats: first word of the subject `<prefix>.<NIM>.closure`.", reload=True)
    ] = "mcf"
    retry_max: RetryMax = 300.0
    allow_plain_http: Annotated[bool, key("https: let `url` be plain `http://` beyond loopback.", reload=True)] = False
    include_sandbox: Annotated[bool, key("Send closures of the sandbox too.", reload=True)] = False
    receipt: Annotated[
        bool,
        key(
            "https: an answer counts only with the receipt that proves it read the event, so that no login page passes for a "
            "delivery (docs/upstream.md).",
            reload=True,
        ),
    ] = False
    presence: Annotated[
        bool,
        key(
            "Say every five minutes that this box is there and how it is: no amounts, no customers (docs/upstream.md).",
            reload=True,
        ),
    ] = True
    box: Annotated[str, key("Name of this box in the events; left out, the NIM.", reload=True)] = ""


class Webhook(Section, frozen=True):
    url: Annotated[Name, key("Where events are sent, `https://…`; no two sections have the same.", reload=True)]
    secret_file: Annotated[Path, key("File with one line, the secret that signs each event.", reload=True)]
    events: Annotated[
        tuple[EventType, ...], key("The types of events to send; left out, all of them.", reload=True)
    ] = ()
    tls_ca: TlsCa = None
    retry_max: RetryMax = 300.0
    allow_plain_http: Annotated[bool, key("Let `url` be plain `http://` beyond loopback.", reload=True)] = False
    include_sandbox: Annotated[bool, key("Send what happens in the sandbox too.", reload=True)] = False
    receipt: Annotated[
        bool,
        key(
            "An answer counts only with the receipt that proves it read the event, so that no login page passes for a delivery "
            "(docs/clients.md).",
            reload=True,
        ),
    ] = False
    name: Annotated[
        LaneName,
        key(
            "Its name in `mcfd upstream status` and in metrics, by which its events wait for it, whatever becomes of its address; "
            "left out, the host and port of `url`.",
            reload=True,
        ),
    ] = ""

    @property
    def lane(self) -> str:
        return self.name or urlsplit(self.url).netloc


class Logs(Section, frozen=True):
    level: Annotated[
        Literal["debug", "info", "warning", "error"], key("Least weight of what is logged.", reload=True)
    ] = "info"
    format: Annotated[
        Literal["auto", "json", "console"],
        key("`json`: one object a line; `console`: for eyes; `auto`: `console` on a terminal, else `json`."),
    ] = "auto"


class Settings(Section, frozen=True):
    """The whole file."""

    server: Annotated[Server, key("The HTTP service.")] = Server()
    storage: Annotated[Storage, key("The ledger.")] = Storage()
    reports: Annotated[Reports, key("Totals and periods.")] = Reports()
    machine: Annotated[
        tuple[Machine, ...],
        key("One section for each fiscal machine; at least one. They do not hinder one another."),
    ] = ()
    sandbox: Annotated[Sandbox, key("The simulated machines behind test keys.")] = Sandbox()
    upstream: Annotated[
        Upstream | None, key("Where closures go (docs/upstream.md). Left out: they stay in the outbox.")
    ] = None
    webhook: Annotated[tuple[Webhook, ...], key("One section for each receiver of events of tills and screens.")] = ()
    company: Annotated[
        Company, key("What stands on invoices and reports beside what the machine knows of the company.")
    ] = Company()
    printer: Annotated[
        Printer | None, key("The receipt printer of this box. Left out: documents are fetched, and printed elsewhere.")
    ] = None
    backup: Annotated[
        Backup | None,
        key("Encrypted backups of the whole box (`mcfd backup --all`). Left out: the nightly one is of the ledger."),
    ] = None
    logs: Annotated[Logs, key("What the daemon writes to stderr.")] = Logs()
    file: Path | None = None
    """Where it was read from, to be read again on SIGHUP; not a key."""

    def payment_labels(self) -> dict[str, str]:
        """A label for each of the letters E V C M B A."""
        return self.labels_in(self.server.language)

    def labels_in(self, language: Language) -> dict[str, str]:
        """The same in that language; what the configuration says goes before."""
        return {**LABELS[language], **self.reports.payment_labels}

    @property
    def tls_home(self) -> Path:
        """The folder of the internal authority, whether or not there is one."""
        return self.server.tls_folder or self.storage.path.parent / "tls"

    def recordings_of(self, nim: str) -> Path:
        """The folder of that machine's recordings, whether or not there is one; another activation of it has the same."""
        return self.storage.path.parent / "recordings" / nim.partition("-")[0]

    def find_machine(self, nim: str | None) -> Machine | None:
        """By its NIM, with or without its suffix; without one, the only machine there is."""
        if not nim:
            return self.machine[0] if len(self.machine) == 1 else None
        return next((machine for machine in self.machine if same_machine(machine.nim, nim)), None)

    def lanes(self) -> dict[str, frozenset[str]]:
        """Which events each destination of the outbox wants: closures upstream, and what each webhook asked for."""
        webhooks = {webhook.lane: frozenset(webhook.events or get_args(EventType)) for webhook in self.webhook}
        return {"upstream": frozenset({"closure.created"}), **webhooks}

    def live_only(self) -> frozenset[str]:
        """The destinations that get none of a sandbox. (What of it goes upstream is decided when it is sent.)"""
        return frozenset(webhook.lane for webhook in self.webhook if not webhook.include_sandbox)
