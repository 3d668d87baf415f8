"""Each exemption of the oracle: two truths after which machine and ledger say the same, or what nobody is told."""

import ast
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from simulation import exemptions

from daemon.core.clock import Clocks, decide_time, latest
from daemon.store.store import Store
from daemon.store.tables.book import take_overs
from daemon.store.tables.book.books import open_book
from daemon.store.tables.book.entries import hours_ahead
from simulator.machine.commands import STATE
from simulator.machine.fiscal_memory import Snapshot
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

NIM, SPARE = "EL02000015", "EL02000099"
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
CODE = 8
"""The place of the last invoice's code in C1h: it tells that an invoice is new, and nothing of what was before."""


def after(*events: str, **options: object) -> list[str]:
    """What C1h tells of a machine to which that happened, but for the code."""
    return log_lines(machine_after(*events, **options))


def machine_after(*events: str, **options: object) -> SimulatedMachine:
    machine = SimulatedMachine(SimulatorOptions(nim=f"{NIM}-1", **options), lambda: NOW)  # type: ignore[arg-type]
    for event in events:
        what, _, detail = event.partition(" ")
        if what == "report":
            machine.fiscal.tc += 1
        elif what == "reset":
            machine.restore(Snapshot())
        elif what == "activation":
            machine.reboot(f"{NIM}-{detail}")
        else:
            machine.certify_foreign(number=detail or "X", invoice_type=what)
    return machine


def log_lines(machine: SimulatedMachine) -> list[str]:
    fields = machine.execute(STATE, b"").data.decode().split(",")
    return fields[:CODE] + fields[CODE + 1 :]


def test_each_exemption_has_a_test_and_a_reason() -> None:
    names = [
        node for node in ast.parse(Path(exemptions.__file__).read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    assert all(ast.get_docstring(node) and f"test_{node.name}" in globals() for node in names)


def test_code_was_reported() -> None:
    """C1h has no code on such a machine."""
    machine = machine_after("FV F-1", no_codes=True)
    assert machine.fiscal.last
    assert machine.fiscal.last.code not in machine.execute(STATE, b"").data.decode()


def test_name_is_another() -> None:
    """A sale before an activation, or after it; and an activation of a machine that does not tell its suffix, or none."""
    assert after("FV F-1", "activation 2") == after("activation 2", "FV F-1")
    assert after("FV F-1", "activation 2", short_nim=True) == after("FV F-1", short_nim=True)


def test_tc_is_later() -> None:
    """The report of the day before a sale, or after it."""
    assert after("report", "FV F-1") == after("FV F-1", "report")


def test_other_counter_is_untold() -> None:
    """A credit note of another program before ours and a report of the day after it, or the reverse; then a sale of that program."""
    assert after("FA X", "FV F-1", "report", "FV X") == after("report", "FV F-1", "FA X", "FV X")


def test_sales_are_named_alike() -> None:
    """The first sale before a reset, and the first after it: name and FVC are the same; so they are on paper that is entered without its name."""
    first, second = after("FV F-1", short_nim=True), after("FV F-1", "reset", "activation 2", "FV F-2", short_nim=True)
    assert (first[0], first[4]) == (second[0], second[4]) == (NIM, "1")
    named = after("FV F-1", "reset", "activation 2", "FV F-2")
    assert after("FV F-1")[4] == named[4]


def test_is_lost() -> None:
    """A sale of ours that an older ledger lacks, or a stranger's, before a last one; and any sale before a reset."""
    assert after("FV F-1", "FV F-2", "FV F-3") == after("FV F-1", "FV STRANGER", "FV F-3")
    assert after("FV F-1", "reset") == after("reset")


def test_number_was_unknown() -> None:
    """A sale of ours that an older ledger lacks, before the machine's last: it may have had any number."""
    assert after("FV FV-2026-000001", "FA K-1") == after("FV OTHER", "FA K-1")


def test_strangers_are_uncounted() -> None:
    """Strangers before a reset, or none; ours or theirs, to an older ledger; ours before theirs, or two of theirs; one before the first meeting of a
    new ledger, or years ago."""
    assert after("FV X", "reset") == after("reset")
    assert after("FV F-1", "FV F-2", "FV F-3") == after("FV F-1", "FV STRANGER", "FV F-3")
    assert after("FV F-1", "FV X") == after("FV Y", "FV X")


def test_periods_are_mixed() -> None:
    """The counters of a Z after a reset are those of another sale before it; an older ledger's next sale may be the one that a Z held already."""
    assert after("FV F-1", "reset", "FV F-2")[3:6] == after("FV F-1")[3:6]
    assert after("FV F-1", "FV F-2", "FV F-3") == after("FV F-1", "FV STRANGER", "FV F-3")


def test_export_may_be_a_report() -> None:
    """An export on a machine that counts it in TC alone and tells no last invoice, or the report of the day; one of ours and somebody else's under the
    number before it, or two reports, where codes are not told."""
    last = slice(6, 10)
    export, report = after("EV F-1", fvc_local=True), after("report", fvc_local=True)
    assert export[3:6] == report[3:6]
    assert not any(report[last])  # as a machine tells it that never tells one
    habits = {"fvc_local": True, "no_codes": True}
    assert after("EV F-1", "EV F-2", "EV F-1", **habits) == after("EV F-1", "report", "report", **habits)


def test_reset_has_no_name() -> None:
    """A reset with an activation, or a machine that was never used."""
    assert after("FV F-1", "reset", "activation 2", short_nim=True) == after(short_nim=True)


def test_reset_left_nothing() -> None:
    """Sales of ours before a reset, or none."""
    assert after("FV F-1", "FV F-2", "reset", "activation 2", short_nim=True) == after(short_nim=True)


async def test_pair_is_unknown(tmp_path: Path) -> None:
    """A new ledger has the pair that the configuration names, and no other."""
    found = []
    for at, pairs in enumerate(([(NIM, SPARE)], [])):
        async with await Store.open(tmp_path / str(at), timezone=UTC, reserve_bytes=0) as store:
            await store.ledger.open_pairs(pairs, (SPARE,))
            book = await store.ledger.write(open_book, SPARE, "live")
            found.append([other.nim for other in store.ledger.peek(take_overs.sharing, book)])
    assert found == [[NIM], []]


def test_machine_has_no_past() -> None:
    """No Z leaves anything on a machine."""
    assert (machine_after().fiscal.tc, after()[3:6]) == (0, ["0", "0", "0"])


def test_outages_are_unsure() -> None:
    """A till that is refused while the box's clock is ten days ahead, and its outage, which is written down when the clock is right again: it begins after
    the refusal on a clock that never was wrong, and before it on this one."""
    book = 1_772_600_000_000
    refused = decide_time(
        Clocks(book, book + 10 * 86_400_000, synchronised=False, machine=None, stepped=False, accepted=0)
    )
    written = decide_time(Clocks(book, book + 1_000, synchronised=False, machine=None, stepped=False, accepted=0))
    assert written.at < refused.at


def test_repair_is_to_the_hour() -> None:
    """A clock that was half an hour ahead, or a whole one: the same repair."""
    now = 1_772_600_000_000
    assert hours_ahead(now + 1_800_000, now) == hours_ahead(now + 3_600_000, now) == 3_600_000


def test_latest_time() -> None:
    """A box whose clock is right after ten days without a sale, or ten days ahead: nothing tells them apart, and the book follows both; so do a box that
    is right after a month and its machine, which is right ten days later, and two that are wrong."""
    book = 1_772_600_000_000
    ahead = book + 10 * 86_400_000
    clocks = Clocks(book, ahead, synchronised=False, machine=None, stepped=False, accepted=0)
    assert ahead <= latest(clocks)
    month = book + 30 * 86_400_000
    alone = Clocks(book, book, synchronised=False, machine=ahead + month - book, stepped=False, accepted=0)
    assert decide_time(alone).at < month < decide_time(msgspec.structs.replace(alone, book=month)).at
