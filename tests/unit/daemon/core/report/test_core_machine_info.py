"""What `info` says of a machine."""

from datetime import UTC, datetime, timedelta

import pytest

from daemon.core.clock import millis
from daemon.core.ledger.book import Book
from daemon.core.machine.state import FiscalCounters, MachineState, ServerLink
from daemon.core.report.machine_info import last_contact, machine_info, tax_server

CONTACT = datetime(2026, 1, 1, 12, tzinfo=UTC)
LINK = ServerLink(40, 45, "20260101120000", "DIS", "")


@pytest.mark.parametrize(
    ("silence", "days", "alert"),
    [
        (timedelta(), 0, False),
        (timedelta(days=6, hours=23), 6, False),
        (timedelta(days=7), 7, False),
        (timedelta(days=7, seconds=1), 7, True),
        (timedelta(days=8), 8, True),
        (timedelta(hours=-1), 0, False),
    ],
)
def test_more_than_seven_days_without_contact_is_an_alert(silence: timedelta, days: int, alert: bool) -> None:
    """Protocol 4: the user is told from the first second after seven days on; a clock that is behind counts as no time."""
    server = tax_server(LINK, millis(CONTACT + silence))
    assert (server.days_since_contact, server.alert) == (days, alert)


@pytest.mark.parametrize(("acknowledged", "stored", "waiting"), [(40, 45, 5), (45, 45, 0), (46, 45, 0)])
def test_what_waits_is_held_and_not_acknowledged(acknowledged: int, stored: int, waiting: int) -> None:
    """`DC - EC` (protocol 3), and never below zero. Before the first contact there is no number of days, and no alert: the machine was only just put into service."""
    server = tax_server(ServerLink(acknowledged, stored, "", "DIS", ""), millis(CONTACT))
    assert server.waiting == waiting
    assert (server.days_since_contact, server.alert, server.last_contact) == (None, False, "")


def test_every_line_of_the_taxpayer_has_its_place() -> None:
    """I0 trade name, I1 and I2 address, I3 city, I4 phone, I5 e-mail; rates in percent; the NIM is the key's."""
    state = MachineState(
        "EL02000015", "00084440Y", "20260101120000", FiscalCounters(9, 7, 2), {"B": 1800, "A": 0}, None
    )
    lines = ("MAISON FASO", "01 BP 1", "Secteur 4", "Ouagadougou", "+226 25", "a@b.bf")
    book = Book(1, "EL02000015-1", "test")
    info = machine_info(book, state, LINK, lines, drift=-2.4, read_at="2026-01-01T12:00:00.000Z", now=millis(CONTACT))
    assert (info.nim, info.nim_short, info.mode, info.clock_drift) == ("EL02000015-1", "EL02000015", "test", -2)
    assert (info.counters.tc, info.counters.fvc, info.counters.frc) == (9, 7, 2)
    merchant = info.merchant
    assert (merchant.commercial_name, merchant.address, merchant.zone, merchant.city) == (
        "MAISON FASO",
        "01 BP 1",
        "Secteur 4",
        "Ouagadougou",
    )
    assert (merchant.phone, merchant.email, info.rates) == ("+226 25", "a@b.bf", {"A": 0, "B": 18})


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (None, "no contact known"),
        (0, "last contact today"),
        (1, "last contact 1 day ago"),
        (2, "last contact 2 days ago"),
    ],
)
def test_how_long_ago_is_told_in_words(days: int | None, expected: str) -> None:
    """Never, today, or how many days."""
    assert str(last_contact(days)) == expected
