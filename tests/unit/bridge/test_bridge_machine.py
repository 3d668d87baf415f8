"""The typed face: one invoice from customer to certification, `P:` answers, cancelling, and the handshake."""

import asyncio
import time

import msgspec
import pytest
from support.line.commands import add_item
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE, QUICK, SYN, Journal, ScriptedPort, answer, replies_of
from support.processor import within

from bridge.commands import (
    AddComment,
    MachineHabits,
    OpenInvoice,
    Pay,
    ReadServerLink,
    ReadState,
    ReadSubtotal,
    ReadTaxpayer,
    SetCustomer,
)
from bridge.errors import LineDown, Nonsense, UnknownCommand, Unsendable
from bridge.link import Link
from bridge.machine import LinkedMachine, handshake
from bridge.replies.answers import Balance, Closed, LineTotals, Opened, ServerLinkReply, SubtotalReply

pytestmark = pytest.mark.quick_timers

STATE = b"EL02000015-1,00084440Y,20260731093000,13,7,2,0,18.00,10,0,0,0,0,0,0,0,0,0,0,0,0,0"
CODE = "TESTFACT0123456789ABCDEF"
CLOSED = f"8,14,FV,20260731093001,EL02000015-1,00084440Y,{CODE},F1".encode()
OPEN = OpenInvoice("FV", "F1", "00084440Y", "TTC", "1", "1", "Awa")
ITEM = add_item("Riz", "B", 1800, 590, 59000, 1000)
GROUPS = ["0", "590", *["0"] * 14]
VAT = ["0", "90", *["0"] * 14]


def machine_over(port: ScriptedPort) -> LinkedMachine:
    return LinkedMachine(Link(port, QUICK, Journal(), first_seq=0x20))


async def test_one_invoice_from_customer_to_certification() -> None:
    """C3h, C0h, 31h, 36h, 33h, 35h, 38h, each with its typed answer and the next SEQ."""
    subtotal = ",".join(["590", *GROUPS, *VAT, "0"]).encode()
    replies = [b"", b"8,13", b"590,500,90,0", b"", subtotal, b"R0", CLOSED]
    port = ScriptedPort(*map(answer, replies))
    machine = machine_over(port)
    assert await replies_of(machine, SetCustomer(), OPEN) == Opened(8, 13)
    assert await replies_of(machine, ITEM) == LineTotals(59000, 50000, 9000, 0)
    result = await replies_of(machine, AddComment("A", "Merci"), ReadSubtotal())
    assert result == SubtotalReply(59000, (0, 59000, *[0] * 14), (0, 9000, *[0] * 14), 0)
    assert await replies_of(machine, Pay("E", 590)) == Balance(0, 0)
    closed = await machine.close_invoice(590, credit=False)
    assert closed == Closed(8, 14, "FV", "20260731093001", "EL02000015-1", "00084440Y", CODE, "F1")
    assert port.requests == [
        (0x20, 0xC3, b""),
        (0x21, 0xC0, b"1,Awa,00084440Y,FV,TTC,1,F1"),
        (0x22, 0x31, b"Riz\tLOCBIE,B18.00%590\t590.00*1.000"),
        (0x23, 0x36, b"A,Merci"),
        (0x24, 0x33, b""),
        (0x25, 0x35, b"E590"),
        (0x26, 0x38, b"590.00"),
    ]


async def test_what_is_asked_between_invoices() -> None:
    """C1h, C2h and 2Bh."""
    machine = machine_over(ScriptedPort(answer(STATE), answer(b"12,14,,DIS"), answer(b"I0,Chez Awa")))
    state = await machine.ask(ReadState())
    assert (state.nim, state.tc, state.fvc, state.frc, state.rates[1]) == ("EL02000015-1", 13, 7, 2, 1800)
    assert await machine.ask(ReadServerLink()) == ServerLinkReply(12, 14, "", "DIS", "")
    assert await machine.ask(ReadTaxpayer(0)) == "Chez Awa"


async def test_replies_are_read_in_the_code_page_of_the_machine() -> None:
    """Of a text in Windows' code page whose bytes are also valid UTF-8, as `É…` is, only the setting shows which it is."""
    port = ScriptedPort(answer("I0,CAFÉ…".encode("cp1252")))
    machine = LinkedMachine(Link(port, QUICK, Journal(), first_seq=0x20), MachineHabits(code_page="cp1252"))
    assert await machine.ask(ReadTaxpayer(0)) == "CAFÉ…"


@pytest.mark.parametrize("credit", [False, True])
async def test_pending_without_end_leaves_the_outcome_unknown(credit: bool) -> None:
    """When patience ends the link does too: nothing may follow before it is known what became of the invoice."""
    port = ScriptedPort(*[answer(b"P:")] * 500)
    machine = machine_over(port)
    patience = QUICK.pending_credit if credit else QUICK.pending_close
    began = time.monotonic()
    with within(patience + 2), pytest.raises(LineDown, match="38h") as down:
        await machine.close_invoice(590, credit=credit)
    assert down.value.sent
    assert time.monotonic() - began > patience - 0.05
    assert port.is_closed


async def test_a_sale_takes_no_longer_than_all_of_it_may_however_it_is_drawn_out() -> None:
    """`P:` after a while, and then SYN without end: the time for the whole of it began with the first 38h, not with the second."""
    busy = [(0.01 * number, SYN) for number in range(1, 200)]
    port = ScriptedPort(lambda seq, cmd, _: [(0.15, naive_encode(seq, cmd, b"P:", IDLE))], busy)
    timers = msgspec.structs.replace(QUICK, first_byte_close=0.5, overall=0.3)
    machine = LinkedMachine(Link(port, timers, Journal()))
    clock = asyncio.get_running_loop().time
    began = clock()
    with pytest.raises(LineDown, match="keeps the line busy"):
        await machine.close_invoice(590, credit=False)
    assert clock() - began < 0.4


async def test_a_caller_that_goes_away_while_38h_is_pending_leaves_the_outcome_unknown() -> None:
    """Given up between two questions counts like given up during one."""
    port = ScriptedPort(*[answer(b"P:")] * 500)
    machine = machine_over(port)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(machine.close_invoice(590, credit=True), 0.1)
    assert (await machine.link.ended()).sent
    assert port.is_closed


@pytest.mark.parametrize(("credit", "delay"), [(False, 0.07), (True, 0.15)])
async def test_the_commit_is_waited_for_longer_than_other_commands(credit: bool, delay: float) -> None:
    """A sale's 38h and a credit note's have their own response timers, and no frame is repeated within them."""
    port = ScriptedPort(lambda seq, cmd, _: [(delay, naive_encode(seq, cmd, CLOSED, IDLE))])
    assert (await machine_over(port).close_invoice(590, credit=credit)).code == CODE
    assert len(port.written) == 1


async def test_a_certification_that_cannot_be_read_is_nonsense_and_keeps_the_line() -> None:
    """The outcome is then unknown to the caller, who can still ask C1h on the same line."""
    port = ScriptedPort(answer(b"8,14"), answer(STATE))
    machine = machine_over(port)
    with pytest.raises(Nonsense):
        await machine.close_invoice(590, credit=False)
    assert (await machine.ask(ReadState())).tc == 13


async def test_the_handshake_believes_the_second_answer() -> None:
    """Two C1h with two SEQs: should the first meet the machine's last SEQ, it only repeats an old reply."""
    old = STATE.replace(b",13,", b",12,")
    port = ScriptedPort(answer(old), answer(STATE))
    state = await handshake(Link(port, QUICK, Journal(), first_seq=0x7F))
    assert state.tc == 13
    assert [seq for seq, _, _ in port.requests] == [0x7F, 0x20]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([], id="silence"),
        pytest.param([naive_encode(0x20, 0x38, b"old certification", IDLE)], id="an old reply of another command"),
        pytest.param([b"\x15"], id="NAK"),
        pytest.param([b"\xff" * 30], id="noise"),
    ],
)
async def test_the_handshake_does_not_need_its_first_answer(first) -> None:
    """One short try: whatever comes instead of it is dropped."""
    port = ScriptedPort(first, answer(STATE))
    link = Link(port, QUICK, Journal(), first_seq=0x20)
    assert (await handshake(link)).tc == 13
    assert len(port.written) == 2


@pytest.mark.parametrize(("command", "cmd"), [(ReadServerLink(), 0xC2), (ReadTaxpayer(0), 0x2B)])
async def test_silence_at_a_command_that_a_machine_need_not_know_keeps_the_line(command, cmd: int) -> None:
    """It is tried as often as any command, then the machine tells its state: it does not know that one. It is not asked again, and sales go on."""
    silence: list[bytes] = []
    port = ScriptedPort(*[silence] * QUICK.tries, answer(STATE), answer(b"8,13"))
    machine = machine_over(port)
    for _ in range(2):
        with pytest.raises(UnknownCommand, match=f"{cmd:X}h"):
            await machine.ask(command)
    assert not machine.link.is_over
    assert await replies_of(machine, OPEN) == Opened(8, 13)
    assert [cmd for _, cmd, _ in port.requests] == [*[cmd] * QUICK.tries, 0xC1, 0xC0]


async def test_silence_at_everything_ends_the_line() -> None:
    """A machine that does not tell its state either is gone, whatever was asked first."""
    machine = machine_over(ScriptedPort(*[[]] * (2 * QUICK.tries)))
    with pytest.raises(LineDown):
        await machine.ask(ReadTaxpayer(0))
    assert machine.link.is_over


async def test_what_cannot_be_sent_is_told_when_it_is_due() -> None:
    """Once the commands before it were taken; the line is as it was."""
    port = ScriptedPort(answer(b""), answer(b""))
    machine = machine_over(port)
    endless = SetCustomer("PM", "9" * 250, "x")
    for before in ((), (SetCustomer(),)):
        with pytest.raises(Unsendable):
            await replies_of(machine, *before, endless)
        assert len(port.requests) == len(before)
    await replies_of(machine, SetCustomer())
