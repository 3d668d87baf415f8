"""Limits that the documents tell in figures are those of the program."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from bridge import frame
from daemon.core import clock, keys
from daemon.core.clock import DAY, HOUR
from daemon.core.invoice import request, rules
from daemon.core.ledger import deferred
from daemon.core.report import acts, machine_info, ranges
from daemon.store.maintenance import health, sandbox
from daemon.store.sqlite import free_space
from daemon.store.tables import people
from daemon.usecases.certification import enter_invoice

DOCS = Path(__file__).parents[2] / "docs"
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


def of(value: int, unit: int) -> int:
    """How many of that unit, exactly."""
    assert value % unit == 0
    return value // unit


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


STAMP, (LOW, MIDDLE, HIGH) = rules.StampDuty(), rules.StampDuty().steps
PSVB = ", ".join(f"{group} {rate / 100:g} %" for group, rate in rules.PSVB_RATES.items())


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            "clients.md",
            f"{acts.REPORTS_AN_HOUR} reports on paper, {acts.MOVES_AN_HOUR} cash movements and {acts.COPIES_AN_HOUR} duplicates an hour",
        ),
        (
            "clients.md",
            f"38h has no answer after {enter_invoice.SLOW_AFTER[False]:g} s, of a credit note after {enter_invoice.SLOW_AFTER[True]:g})",
        ),
        (
            "clients.md",
            f"leaves {of(deferred.TERM, HOUR)} hours (arrêté 2025-0049, article 6 g): page, doctor and `mcfd_deferred_oldest_seconds` warn from {of(deferred.AMBER, HOUR)} hours on, headquarters from {of(deferred.RED, HOUR)}.",
        ),
        ("security.md", f"{of(people.IDLE_MS, HOUR)} hours without a request"),
        (
            "security.md",
            f"and {sandbox.DAYS} days; the last {WORDS[free_space.SANDBOX_RESERVES]} reserves of the disk are live sales'",
        ),
        ("fiscal-rules.md", f"warned daily after {machine_info.ALERT_DAYS} days without the tax server"),
        ("fiscal-rules.md", f"groups {PSVB}, on the amount with all taxes"),
        (
            "fiscal-rules.md",
            f"{LOW[1]} F from {spaced(STAMP.least)}, {MIDDLE[1]} F above {spaced(LOW[0])}, {HIGH[1]} F above {spaced(MIDDLE[0])}, then {STAMP.more} F for each {spaced(STAMP.every)} or part",
        ),
        ("decisions.md", f"`from` to {of(ranges.DEFAULT_RANGE, DAY)} days before `to`"),
        ("decisions.md", f"at most {of(clock.BOUND, DAY)} days after it"),
        ("decisions.md", f"more than {spaced(request.MAX_ITEMS)} items"),
        (
            "decisions.md",
            f"{keys._RANDOM_CHARACTERS} base62 characters and a checksum of {keys._CHECKSUM_CHARACTERS}",
        ),
        ("reliability.md", f"the file and its indexes, up to {of(health.SMALL_BYTES, 1_000_000)} MB"),
        ("protocol.md", f"0 to {frame.MAX_REQUEST_DATA} (request), 0 to {frame.MAX_REPLY_DATA} (response)"),
        ("headquarters.md", f"has not reached the tax server for {machine_info.WARN_DAYS} days"),
    ],
)
def test_a_limit_is_the_one_of_the_documents(document: str, words: str) -> None:
    assert words in re.sub(r"\s+", " ", (DOCS / document).read_text())


def test_units_are_those_of_the_clock() -> None:
    """Milliseconds."""
    assert (
        timedelta(hours=1) / timedelta(milliseconds=1),
        timedelta(days=1) / timedelta(milliseconds=1),
    ) == (HOUR, DAY)
    assert HIGH[0] == STAMP.every
