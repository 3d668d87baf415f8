"""The stored form of an invoice and a tally, and the conversion of a row to a `Record`.

An invoice is MessagePack (structs as arrays), compressed by raw deflate with a preset dictionary: ten lines take about
250 bytes. The first byte is the number of the dictionary; old ones are never removed. A new field of `Invoice` is added
at the end with a default, so that old rows can be read. The keys of a tally are numbers: as names they would be a fifth
of a row.

A damaged row becomes a record that names its entry; other rows are not affected.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any

import msgspec

from common.language import Text
from daemon.core.errors import EntryDamaged, LedgerUnusable
from daemon.core.invoice.invoice import GROUPS, Invoice
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import LastSeen, Tally
from daemon.core.ledger.entries import unreadable
from daemon.core.machine.state import FiscalCounters
from daemon.store.sqlite.file import load

_WINDOW = -12
"""Raw deflate with a window of 4 KiB: receipts are small, and a small window is faster to set up."""

_UNREADABLE = Text("an invoice in the ledger cannot be read; put the last backup back with `mcfd restore --keep-newer`")
_NO_RATES = Text(
    "a machine's rates in the ledger cannot be read; put the last backup back with `mcfd restore --keep-newer`"
)
_NO_TALLY = Text("totals in the ledger cannot be read; put the last backup back with `mcfd restore --keep-newer`")

_NO_SEEN = Text(
    "the last invoice of a machine cannot be read in the ledger; put the last backup back with `mcfd restore --keep-newer`"
)

_seen = msgspec.json.Decoder(LastSeen)
_invoices = msgspec.msgpack.Decoder(Invoice)
_tallies = msgspec.msgpack.Decoder(dict[int | str, int])

_NIM = (
    "coalesce((SELECT CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.was') END FROM entry WHERE entry.book_id = certification.book_id"
    " AND entry.after_seq >= certification.seq AND json_extract(CAST(body AS TEXT), '$.type') = 'epoch'"
    " ORDER BY entry.after_seq, entry.id LIMIT 1), (SELECT nim FROM book WHERE book.id = certification.book_id))"
)
"""NIM of the machine at the time of the record: the old name in the next activation's entry, or the present one. It
comes from the chain, so that a sale cannot be renamed."""

RECORD_COLUMNS = (
    "id, number, type, state, begun_at, base_tc, base_fvc, base_frc, total_ttc, payload, seq, ended_at, code, "
    f"machine_time, ifu, tc, fvc, frc, reason, line_ms, duration_ms, request_id, hash, chained_at, fc, {_NIM}"
)
NUMBER, PAYLOAD, SEQ = map(RECORD_COLUMNS.split(", ").index, ("number", "payload", "seq"))
"""Columns of the invoice's number, the invoice and the seq in such a row."""
_NUMBER_OR_NONE, _TEXT_OR_NONE = (int, NoneType), (str, NoneType)
_TYPES: tuple[Any, ...] = (
    *(int, str, str, str, int, int, int, int, int, bytes, _NUMBER_OR_NONE, _NUMBER_OR_NONE, _TEXT_OR_NONE),
    *(_TEXT_OR_NONE, _TEXT_OR_NONE, _NUMBER_OR_NONE, _NUMBER_OR_NONE, _NUMBER_OR_NONE, _TEXT_OR_NONE),
    *(_NUMBER_OR_NONE, _NUMBER_OR_NONE, _TEXT_OR_NONE, (bytes, NoneType), _NUMBER_OR_NONE, _NUMBER_OR_NONE, str),
)
"""Types of such a row; a flipped bit may change them."""


_DICTIONARIES = {
    1: (
        b"FA\xa3RAN\xa3RAM\xa3RRR\xa3COR RAN FT EV ET EA PP\xadPC PM IMPSER IMPBIE\xa6LOCSER Ouagadougou Bobo-Dioulasso "
        b"SARL Burkina Faso Boisson Bi\xc3\xa8re Caf\xc3\xa9 Th\xc3\xa9 Pain Savon Lait Farine P\xc3\xa2tes Eau min\xc3\xa9rale "
        b"Tomate Sucre 1kg Huile 1L Riz 25kg sachet carton bouteille paquet pi\xc3\xa8ce 500g 250g Produit Article \x92\xa1C\xce"
        b"\x92\xa1V\xce\x92\xa1M\xce\x95\xa1A\x00\xce\x00\xce\x95\xa1C\xcd\x03\xe8\xce"
        b"\xdc\x00\x10\xab2026-000001\xa2FV\xa2HT\xa2FV\xa3TTC\xa11\xa8Caisse 1\xa11\x97\xa2CC\xa0\xa0\xa0\xa0\xa0\xa0\x9a"
        b"\x9c\xa9Article 1\xa1A\x00\xce\x00\x02I\xf0\xcd\x03\xe8\xcd\x05\xdc\xcd\x05\xdc\xa6LOCBIE\xa0\x00\x00\xa0"
        b"\x9c\xa9Article 2\xa1B\xcd\x07\x08\xce\x00\x02I\xf0\xcd\x07\xd0\xcd\x0b\xb8\xcd\x0b\xb8\xa6LOCBIE\xa0\x00\x00\xa0"
        b"\x91\x92\xa1E\xcd\x3a\x98\x91\x95\xa1B\xcd\x07\x08\xcd1\xa8\xcd\x08\xf0\xcd:\x98\xcd:\x98\x90\xa0\xa0\xc0\x90"
    ),
}
# Words of business customers in Burkina Faso and units of goods; then the first dictionary.
_DICTIONARIES[2] = (
    "Zone industrielle Station Société Coopérative Quincaillerie Alimentation Restaurant Hôtel Pharmacie Ets & Frères SA SARL "
    "Boulevard Avenue Rue Secteur 15, BP Bobo-Dioulasso 01, 01 BP Ouagadougou 01, info@compta@contact@gmail.com@yahoo.fr "
    "BF-BBD-01-BF-OUA-01-2018-A10-BF-OUA-01-2022-M-BF-OUA-01-2024-B12-+226 50 +226 60 +226 71 +226 78 +226 25 +226 70 +226 76 "
    " kg 5 kg 10 kg 50 kg 400 g 200 g 33 cl 65 cl 1,5 L ×6 ×12 en poudre sucré parfumé blanc complet "
).encode() + _DICTIONARIES[1]
_NEWEST = max(_DICTIONARIES)
_EMPTY = {number: zlib.compressobj(wbits=_WINDOW, memLevel=5, zdict=words) for number, words in _DICTIONARIES.items()}

_SQL = load(__name__, columns=RECORD_COLUMNS)

UNREADABLE = (sqlite3.DatabaseError, LedgerUnusable)
"""Errors on reading a damaged row: a corrupt page, a text that is not UTF-8, an impossible value."""

Place = tuple[int, int]
"""id and seq of a record"""


def _tally_keys() -> Iterator[str]:
    """Keys in the order of their stored numbers: the most frequent first, new ones at the end; never reordered."""
    parts = [f"{group}.{part}" for group in GROUPS for part in ("ht", "tva", "ttc")]
    totals = {
        kind: [f"{kind}.{part}" for part in ("n", "ttc", *parts)] for kind in ("FV", "FA", "FT", "EV", "ET", "EA")
    }
    yield from totals.pop("FV")
    yield from (f"pay.{method}" for method in "EVCMBA")
    yield from ("specific", "incomplete", *(f"psvb.{group}.{part}" for group in "ABCD" for part in ("base", "amount")))
    for keys in totals.values():
        yield from keys
    yield "reductions"
    yield "test"
    yield "stamp"
    yield from (f"nature.{nature}.{part}" for nature in ("COR", "RAN", "RAM", "RRR") for part in ("n", "ttc"))


_NAMES = dict(enumerate(_tally_keys()))
_NUMBERS = {name: number for number, name in _NAMES.items()}


def invoice_bytes(invoice: Invoice) -> bytes:
    return msgspec.msgpack.encode(invoice)


def read_invoice(content: bytes) -> Invoice:
    try:
        return _invoices.decode(content)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise LedgerUnusable(_UNREADABLE) from error


def pack(content: bytes) -> bytes:
    deflater = _EMPTY[_NEWEST].copy()
    return bytes((_NEWEST,)) + deflater.compress(content) + deflater.flush()


def unpack(payload: bytes) -> bytes:
    """LedgerUnusable if `pack` did not write these bytes."""
    try:
        inflater = zlib.decompressobj(_WINDOW, _DICTIONARIES[payload[0]])
        content = inflater.decompress(payload[1:])
    except (KeyError, IndexError, zlib.error) as error:
        raise LedgerUnusable(_UNREADABLE) from error
    if not inflater.eof or inflater.unused_data:
        raise LedgerUnusable(_UNREADABLE)
    return content


def tally_bytes(tally: Tally) -> bytes:
    return msgspec.msgpack.encode({_NUMBERS.get(name, name): value for name, value in tally.items()})


def read_tally(content: bytes) -> Tally:
    try:
        return {_NAMES[key] if isinstance(key, int) else key: value for key, value in _tallies.decode(content).items()}
    except (msgspec.MsgspecError, KeyError, UnicodeError, TypeError) as error:
        raise LedgerUnusable(_NO_TALLY) from error


def read_rates(text: str) -> dict[str, int]:
    try:
        rates: dict[str, int] = json.loads(text)
    except ValueError as error:
        raise LedgerUnusable(_NO_RATES) from error
    return rates


def rates_text(rates: dict[str, int]) -> str:
    return json.dumps(rates, sort_keys=True, separators=(",", ":"))


def read_seen(text: str | None) -> LastSeen | None:
    try:
        return None if text is None else _seen.decode(text)
    except msgspec.MsgspecError as error:
        raise LedgerUnusable(_NO_SEEN) from error


def seen_text(seen: LastSeen | None) -> str | None:
    return None if seen is None else msgspec.json.encode(seen).decode()


def counters_of(tc: int | None, fvc: int | None, frc: int | None) -> FiscalCounters | None:
    if tc is None or fvc is None or frc is None:
        return None
    return FiscalCounters(tc, fvc, frc)


def record_of(row: tuple[Any, ...], content: bytes | None = None) -> Record:
    """`row` has `RECORD_COLUMNS`; `content`: the unpacked invoice, if known. EntryDamaged for an impossible row."""
    if not all(map(isinstance, row, _TYPES)):
        raise EntryDamaged(row[SEQ], row[NUMBER])
    try:
        invoice = read_invoice(unpack(row[PAYLOAD]) if content is None else content)
    except LedgerUnusable as error:
        raise EntryDamaged(row[SEQ], row[NUMBER]) from error
    (id_, number, type_, state, begun_at, base_tc, base_fvc, base_frc, total_ttc, _, seq, ended_at, *rest) = row
    code, machine_time, ifu, tc, fvc, frc, reason, line_ms, duration_ms, request_id, hash_, chained_at, fc, nim = rest
    return Record(
        id=id_,
        number=number,
        type=type_,
        state=state,
        begun_at=begun_at,
        base=FiscalCounters(base_tc, base_fvc, base_frc),
        total_ttc=total_ttc,
        invoice=invoice,
        seq=seq or 0,
        ended_at=ended_at or 0,
        code=code or "",
        machine_time=machine_time or "",
        ifu=ifu or "",
        counters=counters_of(tc, fvc, frc),
        reason=reason or "",
        line_ms=line_ms or 0,
        duration_ms=duration_ms or 0,
        request_id=request_id or "",
        hash=hash_ or b"",
        chained_at=chained_at or 0,
        nim=nim,
        fc=fc,
    )


def each_of(connection: sqlite3.Connection, places: Iterable[Place]) -> Iterator[Record]:
    """The records at these places, read one by one; a damaged one as `unreadable`."""
    for record_id, seq in places:
        try:
            yield record_of(connection.execute(_SQL["by_id"], (record_id,)).fetchone())
        except (*UNREADABLE, TypeError):  # TypeError: the row is gone
            yield unreadable(record_id, seq, *_named(connection, record_id))


def _named(connection: sqlite3.Connection, record_id: int) -> tuple[str, str]:
    """Number and NIM of a damaged record, from the row or else the index; empty if neither can be read."""
    number = nim = ""
    for name in ("row", "indexed"):
        try:
            with lenient(connection):
                row = connection.execute(_SQL[name], (record_id,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            number, nim = number or _text(row[0]), nim or _text(row[1])
    return number, nim


def _text(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


@contextmanager
def lenient(connection: sqlite3.Connection) -> Iterator[None]:
    """Reads a text that is not UTF-8 with surrogates, so that the rest of the row can be read."""
    before = connection.text_factory
    connection.text_factory = unchanged
    try:
        yield
    finally:
        connection.text_factory = before


def unchanged(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
