"""The machine itself: the way of an invoice, every refusal, counters, the last invoice, its own daily report."""

import pytest
from support.simulator.simulator_till import Till, opening

from simulator.machine.command_data import GROUPS
from simulator.machine.fiscal_memory import RememberedInvoice, Snapshot
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions


def test_every_group_has_its_place_in_the_subtotal():
    """A…P: the total in field 1 + i, its VAT in field 17 + i, in both price modes."""
    for mode in ("TTC", "HT"):
        till = Till()
        rates = dict(zip(GROUPS, till.state()[11:], strict=True))
        lines = [f"x\tLOCBIE,{group}{rates[group]}%{1000 + i}\t{1000 + i}" for i, group in enumerate(GROUPS)]
        till.enter("F-1", *lines, mode=mode)
        fields = [int(field) for field in till.take(0x33).split(",")]
        for i, group in enumerate(GROUPS):
            rate, amount = int(float(rates[group])), 1000 + i
            tva = (
                (amount * rate * 2 + 100) // 200
                if mode == "HT"
                else amount - (2 * amount * 100 + 100 + rate) // (2 * (100 + rate))
            )
            assert fields[17 + i] == tva, group
            assert fields[1 + i] == (amount + tva if mode == "HT" else amount), group
        assert fields[0] == sum(fields[1:17])


def test_counters_by_type():
    """TC counts all, FVC every sale, FRC the credit notes; 38h names the counter of its own type."""
    till = Till()
    credit = {"FA": "COR,EL02000015-1-1", "EA": "RRR,RRR"}
    for tc, (kind, fc) in enumerate(zip(("FV", "FT", "EV", "ET", "FA", "EA"), "123412", strict=True), 1):
        assert till.certify(f"N-{tc}", kind=kind, credit=credit.get(kind, ""))[:3] == [fc, str(tc), kind]
    assert till.state()[3:6] == ["6", "4", "2"]


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("short_nim", lambda state, _answer: state[0] == "EL02000015"),
        ("dashed_codes", lambda state, answer: len(answer[6]) == 29 and state[8] == answer[6]),
        ("close_number", lambda _state, answer: answer[7] == "F-1"),
        ("close_prefix", lambda _state, answer: answer[0] == "R:1"),
    ],
)
def test_firmware_habits(option, found):
    """Each habit in which real machines differ can be switched on."""
    till = Till(**{option: True})
    total = till.enter_and_pay("F-1")
    answer = till.take(0x38, f"{total}.00").split(",")
    assert found(till.state(), answer)


def test_taxpayer_lines_with_and_without_their_label():
    """2Bh I0…I5; anything else is refused."""
    assert Till().ask(0x2B, "I0") == "I0,MAISON FASO"
    assert Till(plain_taxpayer=True).ask(0x2B, "I0") == "MAISON FASO"
    assert Till().ask(0x2B, "I2") == "I2,Avenue Kwamé Nkrumah^x2c; secteur 4"
    assert [Till().ask(0x2B, f"I{n}")[:3] for n in range(6)] == [f"I{n}," for n in range(6)]
    assert Till().ask(0x2B, "I6").startswith("E:")
    assert Till().ask(0x2B).startswith("E:")


def test_daily_report_moves_tc():
    """The first command after midnight finds TC one higher, once, if the day before had activity; an open invoice goes first."""
    till = Till()
    till.certify("F-1")
    till.clock.advance(24 * 3600)
    assert till.state()[3:6] == ["2", "1", "0"]
    till.clock.advance(24 * 3600)
    assert till.state()[3:6] == ["2", "1", "0"]
    assert till.certify("F-2")[:2] == ["2", "3"]
    till.clock.advance(9 * 24 * 3600)
    assert till.state()[3:6] == ["4", "2", "0"]
    till = Till()
    till.certify("F-1")
    till.clock.advance(14 * 3600)
    till.enter_and_pay("F-2")
    till.clock.advance(3600)
    assert till.take(0x38, "15000.00").split(",")[1] == "2"
    assert till.state()[3] == "2"


def test_tax_server_link():
    """C2h: what waits is DC - EC; without contact it grows, with contact it is 0 again."""
    till = Till(server_interval=60.0)
    till.take(0xC1)
    till.machine.fiscal.reachable = False
    till.certify("F-1")
    till.certify("F-2")
    assert till.take(0xC2) == "0,2,20260302090000,DIS"
    till.machine.fiscal.reachable = True
    till.clock.advance(61)
    assert till.take(0xC2) == "2,2,20260302090101,DIS"
    till.machine.fiscal.server_error = "timeout, 3 tries"
    assert till.take(0xC2).split(",")[4] == "timeout^x2c; 3 tries"


def test_snapshot_and_restore():
    """It goes on where the other stopped, and knows the last number; counters and last invoice are enough, as of the sandbox."""
    till = Till()
    till.certify("F-1")
    snapshot = till.machine.snapshot()
    assert snapshot.last == RememberedInvoice("F-1", snapshot.last.code, "20260302090000", "FV", 15_000)
    other = Till(SimulatedMachine(SimulatorOptions(), till.clock))
    other.machine.restore(snapshot)
    assert other.state()[3:11] == till.state()[3:11]
    assert other.ask(0xC0, opening("F-1")).startswith("E:")
    assert other.certify("F-2")[1] == "2"
    last = RememberedInvoice("T-9", "TESTFACT" + "A" * 16, "20260301120000", "FV", 500)
    till.machine.restore(Snapshot(9, 7, 2, last))
    assert till.state()[3:11] == ["9", "7", "2", "20260301120000", "FV", last.code, "T-9", "500"]


def test_somebody_else_uses_the_machine():
    """A foreign invoice ends ours, moves the counters and is the last one."""
    till = Till()
    till.enter_and_pay("F-1")
    till.machine.certify_foreign(total=700)
    assert till.state()[3:6] == ["1", "1", "0"]
    assert till.state()[9:11] == ["FOREIGN-1", "700"]
    assert till.ask(0x38, "15000.00").startswith("E:")
