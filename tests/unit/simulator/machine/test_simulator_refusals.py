"""Everything the machine refuses, in every state and mode, and that a refusal changes nothing."""

import pytest
from support.simulator.simulator_till import RICE, Till, opening

from simulator.machine.command_data import GROUPS
from simulator.machine.working_state import Mode, Stage


def at_stage(stage: Stage) -> Till:
    till = Till(credit_check=60.0)
    till.take(0xC1)
    credit = "COR,RRR" if stage is Stage.CHECKING else ""
    kind = "FA" if credit else "FV"
    steps = {
        Stage.IDLE: [],
        Stage.OPEN: [(0xC0, opening("F-1", kind=kind, credit=credit))],
        Stage.ITEMS: [(0x31, RICE)],
        Stage.SUBTOTALLED: [(0x33, "")],
        Stage.PAYING: [(0x35, "E1")],
        Stage.PAID: [(0x35, "E14999")],
        Stage.CHECKING: [(0x38, "15000.00")],
    }
    for reached, commands in steps.items():
        for command, text in commands:
            till.take(command, text)
        if reached is stage:
            break
    assert till.machine.stage is stage
    return till


ALLOWED = {
    (0xC3, ""): {Stage.IDLE},
    (0xC0, opening("F-2")): {Stage.IDLE},
    (0x31, RICE): {Stage.OPEN, Stage.ITEMS},
    (0x36, "A,Merci"): {Stage.ITEMS},
    (0x33, ""): {Stage.ITEMS, Stage.SUBTOTALLED},
    (0x35, "E1"): {Stage.SUBTOTALLED, Stage.PAYING},
    (0x38, "15000.00"): {Stage.PAID, Stage.CHECKING},
    (0x38, "C"): set(Stage) - {Stage.IDLE},
    (0xC1, ""): set(Stage),
    (0xC2, ""): set(Stage),
    (0x2B, "I0"): set(Stage),
}


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize(("command", "text"), list(ALLOWED))
def test_every_command_in_every_state(command, text, stage):
    """What is allowed is taken; what is not is `E:` with the status bit, and changes nothing."""
    till = at_stage(stage)
    before = (till.machine.stage, till.machine.snapshot())
    answer = till.ask(command, text)
    assert answer.startswith("E:") == (stage not in ALLOWED[command, text]), answer
    if answer.startswith("E:"):
        assert till.status[1] == 0x82
        assert (till.machine.stage, till.machine.snapshot()) == before


def test_status_bytes():
    """Bit 7 is always set; byte 2 bit 3 while an invoice is open; byte 0 bit 0 for syntax, bit 1 for an unknown command."""
    till = Till()
    till.take(0xC1)
    assert till.status == b"\x80" * 6
    till.take(0xC0, opening("F-1"))
    assert till.status == b"\x80\x80\x88\x80\x80\x80"
    assert till.ask(0x31, "nonsense").startswith("E:")
    assert till.status == b"\xa1\x80\x88\x80\x80\x80"
    assert till.ask(0x99).startswith("E:")
    assert till.status[0] == 0xA2


REFUSED = {
    (Stage.IDLE, 0xC0): (
        *("", "1,Awa,00084440Y,FV,TTC,1", "1,Awa,00084440Y,FV,TTC,1,F-1,more", "1,Awa,00084440Y,FX,TTC,1,F-1"),
        *("1,Awa,00084440Y,FA,TTC,1,F-1", "1,Awa,00084440Y,FV,COR,RRR,TTC,1,F-1"),
        "1,Awa,00084440Y,FA,XXX,RRR,TTC,1,F-1",  # a nature that there is not
        *("1,Awa,00084440Y,FA,COR,F-1,TTC,1,F-2", "1,Awa,00084440Y,FV,TTX,1,F-1", "1,Awa,00099999Z,FV,TTC,1,F-1"),
        *("1,Awa,00084440Y,FV,TTC,1,", ",Awa,00084440Y,FV,TTC,1,F-1", "1,Awa,00084440Y,FV,TTC,1," + "9" * 60),
    ),
    (Stage.IDLE, 0xC3): (
        *("CC", "CC,,,,,", "XX,,,,,,", "PM,,,,,,", "PC,123,,,,,", "PM,,SOCIETE,,,,", "PM,1,a,b,c,d,e,f"),
        "PM,1,a<b,,,,",
    ),
    (Stage.SUBTOTALLED, 0x35): ("", "E", "X100", "E-5", "E0", "E0.00", "E1.005", "E1e3", "100"),
    (Stage.ITEMS, 0x36): ("", "I,Merci", "A", "AB,Merci", "A,a,b", "a,Merci", ",x"),
    (Stage.PAYING, 0x38): ("15000.00",),
    (Stage.PAID, 0x38): ("14999.00", "15001", "15000.50", "", "x", "c", "-15000"),
}


@pytest.mark.parametrize(("stage", "command", "text"), [(*at, text) for at, texts in REFUSED.items() for text in texts])
def test_what_is_refused(stage, command, text):
    """C0h, C3h, 35h, 36h and 38h with wrong data, as the protocol has them; the machine stays as it was."""
    till = at_stage(stage)
    answer = till.ask(command, text)
    assert answer.startswith("E:Still due: 14999" if stage is Stage.PAYING else "E:")
    assert till.machine.stage is stage


def test_what_the_next_invoice_uses_up():
    """C3h is for one invoice. Only the last number is not certified again: the one before it, the machine has forgotten (protocol 4)."""
    till = Till()
    till.take(0xC3, "PP,,Awa Ouédraogo,,,,")
    till.certify("F-1")
    assert till.ask(0xC0, opening("F-1")) == "E:Invoice number already certified"
    till.certify("F-2")
    assert [entry.customer.name for entry in till.machine.fiscal.log] == ["Awa Ouédraogo", ""]
    till.certify("F-1")


def test_change_is_given():
    """20 000 for 15 000: R5000; then nothing more is to be paid."""
    till = at_stage(Stage.SUBTOTALLED)
    assert till.ask(0x35, "E20000.50") == "R5000.5"
    assert till.ask(0x35, "E1").startswith("E:")


def test_eight_comments_one_for_each_letter():
    """A…H; the same letter a second time is refused, so there are never more than eight."""
    till = at_stage(Stage.ITEMS)
    for label in "ABCDEFGH":
        till.take(0x36, f"{label},ligne {label}")
    assert all(till.ask(0x36, f"{label},encore").startswith("E:") for label in "ABCDEFGH")


def test_cancel():
    """38h C ends an open invoice without counting it; with none open it is refused."""
    till = at_stage(Stage.PAID)
    till.take(0x38, "C")
    assert till.ask(0x38, "C") == "E:No invoice open"
    assert till.state()[3:6] == ["0", "0", "0"]
    assert till.certify("F-1")[1] == "1"


def test_a_subtotal_that_does_not_fit_is_refused():
    """Sixteen groups of 10 digits are more than 212 bytes: `E:`, and the invoice can be cancelled."""
    till = Till()
    rates = dict(zip(GROUPS, till.state()[11:], strict=True))
    till.enter("F-1", *(f"x\tLOCBIE,{g}{rates[g]}%9000000000\t9000000000" for g in GROUPS))
    assert till.ask(0x33).startswith("E:")
    assert till.machine.stage is Stage.ITEMS
    till.take(0x38, "C")


def test_a_number_that_would_not_fit_into_c1h_is_refused_at_once():
    """Else the machine could never tell its last invoice. The longest that it takes is told whole."""
    till = Till(dashed_codes=True)
    longest = max(
        length
        for length in range(1, 60)
        if not till.ask(0xC0, opening("9" * length)).startswith("E:") and till.take(0x38, "C")
    )
    assert 20 <= longest < 60
    till.certify("9" * longest)
    assert till.state()[9] == "9" * longest


@pytest.mark.parametrize("mode", [Mode.NOT_ACTIVATED, Mode.BLOCKED, Mode.DEACTIVATED])
def test_only_an_active_machine_certifies(mode):
    """Protocol 4: the others refuse, but say who they are; an open invoice can still be cancelled."""
    till = at_stage(Stage.PAID)
    till.machine.mode = mode
    for command, text in ((0x38, "15000.00"), (0xC3, ""), (0xC0, opening("F-2"))):
        assert till.ask(command, text) == f"E:Machine {mode.value}"
    till.take(0x38, "C")
    for command, text in ((0xC1, ""), (0xC2, ""), (0x2B, "I0")):
        till.take(command, text)
