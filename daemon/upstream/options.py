"""Options of a receiver: values and paths only; secrets stay in their files until an adapter reads them. Key files; the
signatures themselves are in `common.wire.signing`, the same for every receiver.

The result of a try: delivered, parked, or to be repeated, by one table for every receiver. Only a fault in the event
itself, which would be the same at the next try, parks it. A fault at the other side (a key, an address, a full disk, a
login page) is corrected there; then everything is delivered without any action at ten thousand boxes."""

import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from common.files import read_file, write_whole
from common.language import Text, sentence, tr
from common.language.reasons import (
    ADDRESS_SILENT,
    ANSWERED,
    ANSWERED_WITHOUT_RECEIPT,
    CERTIFICATE_EARLY,
    CERTIFICATE_ENDED,
    CERTIFICATE_REFUSED,
    NAME_UNKNOWN,
    NETWORK_UNREACHABLE,
    REFUSED_THERE,
    Reason,
)
from common.language.system import reason
from common.wire.calendar_closure import TYPES as CALENDAR_TYPES
from common.wire.closure import TYPES, Trial, TrialData, encode_trial
from common.wire.keys import KEY_BYTES, BadKey, PrivateKey, SharedKey, private_line, signing_key
from common.wire.upstream_kinds import KINDS
from daemon.core.delivery import Delivered, Delivery, DeliveryRefused, Outgoing, Proof, RetryLater, UpstreamReceiver

WRITTEN = 1_764_547_200
"""2025-12-01."""
TAKEN: Final = frozenset({*range(200, 300), 409})
"""409: it has that event already."""
PARKED: Final = frozenset({400, 413, 422})
"""No event, too large, or invalid: headquarters can read it neither now nor later."""


CERTIFICATE_FAULTS: Final[dict[int, Text]] = {9: CERTIFICATE_EARLY, 10: CERTIFICATE_ENDED}
"""By OpenSSL's code (X509_V_ERR_…)."""
CONNECTION_FAULTS: Final = {
    socket.EAI_NONAME: NAME_UNKNOWN,
    socket.EAI_AGAIN: NAME_UNKNOWN,
    errno.ENETUNREACH: NETWORK_UNREACHABLE,
    errno.EHOSTUNREACH: NETWORK_UNREACHABLE,
    errno.ECONNREFUSED: REFUSED_THERE,
}
"""By the system's number."""
ERROR_NUMBER: Final = re.compile(r"\[Errno (-?\d+)\]")


class BadOptions(ValueError):
    """The receiver cannot be opened as configured; the text names the key and never a secret."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout`: seconds of one try. Every file in `key_files` signs each event. With `receipt` an answer counts only
    if it proves that the event was read (`common.wire.signing`). `lane_keys`: ids of a NIM's keys for the relay, read
    at each presence. `nims`: names allowed in NATS subjects, as configured: an activation changes a machine's
    suffix. `section` is the configuration's, for BadOptions."""

    url: str
    key_files: tuple[Path, ...] = ()
    credentials_file: Path | None = None
    tls_ca: Path | None = None
    subject_prefix: str = "mcf"
    allow_plain: bool = False
    timeout: float = 10.0
    receipt: bool = False
    lane_keys: Callable[[str], Sequence[str]] = lambda _: ()
    nims: tuple[str, ...] = ()
    section: str = "upstream"


def read_text(path: Path, what: str, encoding: str = "ascii") -> str:
    """Reads a short text file. Raises BadOptions, which names it."""
    try:
        return read_file(path).decode(encoding).strip()
    except OSError as error:
        raise BadOptions(tr("{what} {path}: {why}", what=what, path=path, why=reason(error))) from None
    except UnicodeDecodeError:
        raise BadOptions(tr("{what} {path}: not text", what=what, path=path)) from None


def tls_context(ca: Path | None, *, is_used: bool = True, section: str = "upstream") -> ssl.SSLContext:
    """Checks certificates and host names against `ca`, else against the system's. Reading these takes 30 ms of
    processor time, so without TLS (`is_used`) none are loaded."""
    if not (ca or is_used):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise BadOptions(f"{section}.tls_ca {ca}: {error.strerror or error}") from None


def certificate_fault(error: BaseException | None) -> Text | None:
    """Why the receiver's certificate was not accepted; None if the error has another cause."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    return CERTIFICATE_FAULTS.get(error.verify_code) or CERTIFICATE_REFUSED(cause=error.verify_message)


def connection_fault(error: BaseException) -> Reason | str:
    """Why there was no connection: what the system said to the library, else what the library says. Of a host with several
    addresses, the first one's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):  # of httpx
            cause = cause.exceptions[0]
        if isinstance(cause, TimeoutError):
            return ADDRESS_SILENT
        number = ERROR_NUMBER.search(str(cause))  # asyncio puts those of several addresses into one text
        if isinstance(cause, OSError) and number and (fault := CONNECTION_FAULTS.get(int(number[1]))):
            return fault
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {error}"[:200]


def open_receiver(kind: str, options: Options) -> UpstreamReceiver:
    """Raises BadOptions if the configuration does not work; whether the receiver answers is seen at delivery."""
    if kind not in KINDS:
        raise BadOptions(f"upstream.kind: {kind!r} is none of {', '.join(KINDS)}")
    receiver: UpstreamReceiver = import_module(f"daemon.upstream.{kind}").open_receiver(options)
    return receiver


def read_keys(paths: Sequence[Path]) -> list[SharedKey | PrivateKey]:
    """One key a line; two lines while a key is replaced: both sign."""
    keys = []
    for path in paths:
        lines = read_text(path, "upstream key").split()
        if not lines:
            raise BadOptions(tr("{what} {path}: empty", what="upstream key", path=path))
        keys += [parse_key(line, f"upstream key {path}") for line in lines]
    return keys


def parse_key(line: str, where: str) -> SharedKey | PrivateKey:
    """`where` is for errors; the key itself is never printed."""
    try:
        return signing_key(line)
    except BadKey as error:
        raise BadOptions(tr("{where}: {why}", where=where, why=sentence(error))) from None


def signing_time(now: float, since: int) -> int:
    """Seconds. `since`: time of the event in ms. A clock before this program's date has lost the date: then the event's
    time is closer. Any other clock counts, since an event may be from a day on which the clock was ahead."""
    return int(now) if now >= WRITTEN else max(WRITTEN, since // 1000)


def generate(path: Path) -> str:
    """Makes a key pair; writes the private key to `path` (0600, never over another file); returns the public one."""
    seed = os.urandom(KEY_BYTES)
    write_whole(path, f"{private_line(seed)}\n".encode("ascii"), 0o600, is_new=True)
    return PrivateKey(seed).public


def verdict(status: int, text: str, retry_after: float | None, *, has_receipt: bool = True) -> Delivery:
    """The result of an HTTP answer. `text` is its beginning, for people; `has_receipt` is whether it proves that it
    read the event, if that is required."""
    if status in TAKEN:
        reason = ANSWERED_WITHOUT_RECEIPT(answer=f"{status} {text}".rstrip())
        return Delivered() if has_receipt else RetryLater(reason, retry_after)
    error = ANSWERED(answer=f"{status} {text}".rstrip())
    return DeliveryRefused(error) if status in PARKED else RetryLater(error, retry_after)


def compose(entry: Outgoing, box: str = "", key_id: str = "") -> bytes:
    """The event of one closure: the same bytes at every try, also after an activation, since its machine is the
    report's. `box` is the box's label, or empty for the NIM; `key_id` is the first signing key. Raises ValueError if
    the stored report cannot be read."""
    try:
        report = msgspec.json.decode(entry.body, type=dict[str, Any])
        body = entry.body.decode()
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError(f"the stored report is not a JSON object: {error}") from error
    if not report.get("created_at"):
        raise ValueError("the stored report has no created_at")
    nim = report.get("nim") or entry.nim
    data = {**report, "mode": entry.mode, "box": box or nim}
    if entry.chain:
        data["chain_head"] = entry.chain.hex()
    if entry.proof is not None:
        data |= {**_proven(entry.proof), "body": body}
    if entry.lineage is not None:
        ledger_id, epoch = entry.lineage
        data |= {"ledger_id": ledger_id, "epoch": epoch, "body": body}
    if key_id:
        data["key_id"] = key_id
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": entry.report_id,
            "source": f"/mcf/{nim}",
            "type": TYPES[entry.mode] if entry.kind == "Z" else CALENDAR_TYPES[entry.kind, entry.mode],
            "subject": str(entry.z_number),
            "time": report["created_at"],
            "datacontenttype": "application/json",
            "data": data,
        }
    )


def _proven(proof: Proof) -> dict[str, object]:
    return {
        "ledger_id": proof.ledger_id,
        "epoch": proof.epoch,
        "previous_report_id": proof.previous_report_id,
        "previous_chain_head": proof.previous_head.hex(),
        "first_seq": proof.first_seq,
        "last_seq": proof.last_seq,
        "opening_counters": None
        if proof.opening is None
        else dict(zip(("tc", "fvc", "frc"), proof.opening, strict=True)),
        "gaps": [{"first": gap.first, "last": gap.last, "known_from": gap.known_from} for gap in proof.gaps],
    }


def compose_trial(event_id: str, nim: str, *, at: str, box: str, key_id: str) -> bytes:
    """The message of `mcfd upstream test`, without content. `at` in RFC 3339; `box` and `key_id` as in `compose`."""
    data = TrialData(nim, box, key_id)
    return encode_trial(Trial(id=event_id, source=f"/mcf/{nim}", time=at, data=data))
