"""The counter of its type (SECeF 2.12.4) of a certification that the machine did not tell with it, where the ledger makes it certain.

FVC counts the sales of several types, FRC the credit notes; FC of 38h may be either, or count each type by itself. It is certain where nothing but invoices
of this very type was counted since the last FC that is known, or since the beginning; and where FC still is FVC (FRC) later on.
"""

from __future__ import annotations

import sqlite3

from daemon.core.ledger.attempt import UNTOLD
from daemon.core.machine.state import FiscalCounters
from daemon.store.sqlite.queries import load

_SQL = load(__name__)

REACH = 5_000
"""Entries that are looked through."""


def derived(
    connection: sqlite3.Connection, book_id: int, *, seq: int, epoch: int, type_: str, now: FiscalCounters
) -> int:
    """Of the certification with that seq, which is there or just being written; UNTOLD where it is not certain."""
    if type_ not in ("FV", "FT", "FA"):
        return UNTOLD
    count = _counted(type_, now.fvc, now.frc)
    place = (book_id, seq, epoch, type_, REACH)
    since = fc = counted = 0
    if before := connection.execute(_SQL["before"], place).fetchone():
        since, fc, *both = before
        counted = _counted(type_, *both)
    if before or count <= REACH:
        (others,) = connection.execute(_SQL["between"], (book_id, since, seq, epoch, type_)).fetchone()
        if count - counted == others + 1:
            return int(fc + others + 1)
    after = connection.execute(_SQL["after"], place).fetchone()
    return count if after and after[0] == _counted(type_, *after[1:]) else UNTOLD


def of_older(connection: sqlite3.Connection, book_id: int, record_id: int, type_: str, now: FiscalCounters) -> int:
    """The same of one that was certified before counters were kept."""
    seq: int
    epoch: int
    seq, epoch = connection.execute(_SQL["place"], (record_id,)).fetchone()
    return derived(connection, book_id, seq=seq, epoch=epoch, type_=type_, now=now)


def _counted(type_: str, fvc: int, frc: int) -> int:
    return frc if type_ == "FA" else fvc
