"""The machine adapter: errors of the bridge in our words, and what is never believed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from support.core_samples import body, read
from support.line.scripted_line import ScriptedPort, answer

from bridge import errors as bridge
from bridge.link import Link, Timers
from bridge.machine import LinkedMachine, handshake
from bridge.replies.answers import Closed
from daemon.core.errors import LineLost, MachineError, MachineNonsense, MachineRefused
from daemon.core.invoice.invoice import Comment, Invoice, Payment, TaxLine
from daemon.core.machine.state import FiscalCounters, Subtotal
from daemon.machines.adapter import ConnectedMachine, same_number, translated
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers

NIM, OTHER = "EL02000015-1", "EL02000044-1"

TABLE = [
    (bridge.BridgeError("odd"), LineLost, "odd"),
    (
        bridge.PortUnavailable("/dev/mcf", "missing", "there is no such device"),
        LineLost,
        "/dev/mcf: there is no such device",
    ),
    (
        bridge.Unsendable("the number does not fit a frame"),
        MachineRefused,
        "the machine refused: the number does not fit a frame",
    ),
    (bridge.LinkEnded("closed"), LineLost, "closed"),
    (bridge.PortVanished("gone", sent=True), LineLost, "gone"),
    (bridge.LineDown("no answer", sent=True), LineLost, "no answer"),
    (bridge.Refused("No amount!"), MachineRefused, "the machine refused: No amount!"),
    (bridge.Nonsense("38h says soup"), MachineNonsense, "38h says soup"),
    (bridge.UnknownCommand(0xC2), MachineNonsense, "the machine does not know the command C2h"),
]


def tree(root: type[Exception]) -> set[type[Exception]]:
    return {root}.union(*(tree(below) for below in root.__subclasses__()))


@pytest.mark.parametrize(("error", "ours", "text"), TABLE)
def test_every_error_of_the_bridge_has_one_of_ours(
    error: bridge.BridgeError, ours: type[MachineError], text: str
) -> None:
    """The cause stays with it, for the log. A new one needs a translation; a mistake of ours is no trouble of the machine, and passes."""
    with pytest.raises(ours) as raised, translated():
        raise error
    assert (type(raised.value), str(raised.value), raised.value.__cause__) == (ours, text, error)
    assert {type(each) for each, _, _ in TABLE} == tree(bridge.BridgeError)
    with pytest.raises(KeyError), translated():
        raise KeyError


def invoice() -> Invoice:
    """A sale of 15 000 in group B, with a comment."""
    return msgspec.structs.replace(read(body(invoiceNumber="F-1")), comments=(Comment("A", "Merci"),))


@pytest.fixture
def session() -> LineSession:
    return LineSession(SimulatedMachine(SimulatorOptions(nim=NIM, ifu="00084440Y")))


@pytest.fixture
async def machine(session: LineSession) -> AsyncIterator[ConnectedMachine]:
    link = Link(MemoryPort(session), Timers(first_byte=0.2, first_byte_close=0.2))
    connected = ConnectedMachine(LinkedMachine(link), NIM)
    connected.convert(await handshake(link))
    yield connected
    link.close()


async def entered(machine: ConnectedMachine) -> Invoice:
    own = invoice()

    def agree(subtotal: Subtotal) -> Sequence[Payment]:
        assert subtotal.taxes == own.taxes
        return own.payments

    await machine.enter(own, "00084440Y", agree)
    return own


async def read_subtotal(*fields: str) -> Subtotal:
    """What the callback that has to agree gets of a reply to 33h."""
    link = Link(ScriptedPort(*map(answer, (b"", b"1,1", b"15000,12712,2288,0", b"", ",".join(fields).encode()))))
    messages: list[Subtotal] = []

    def agree(subtotal: Subtotal) -> Sequence[Payment]:
        messages.append(subtotal)
        return ()

    await ConnectedMachine(LinkedMachine(link)).enter(invoice(), "00084440Y", agree)
    link.close()
    return messages[0]


@pytest.mark.parametrize("expected", ["1180", "1000"])
async def test_a_group_s_total_with_or_without_its_vat_is_understood(expected: str) -> None:
    """33h in HT mode: the total of all tells which it is; a group whose rate the machine did not tell has none."""
    groups, vat = ["500", expected] + ["0"] * 14, ["0", "180"] + ["0"] * 14
    result = await read_subtotal("1680", *groups, *vat, "0")
    assert result.taxes == (TaxLine("A", 0, 500, 0, 500), TaxLine("B", 0, 1000, 180, 1180))


@pytest.mark.parametrize(("expected", "francs"), [(["100"], 100), (["100.50"], 101), (["0"], 0), ([], None)])
async def test_the_specific_tax_of_a_subtotal_is_told_in_francs(expected: list[str], francs: int | None) -> None:
    """Nought is a word of the machine, and none is none."""
    result = await read_subtotal("1000", "1000", *["0"] * 31, *expected)
    assert (result.total_ttc, result.specific_tax) == (1000, francs)


async def test_a_payment_is_refused_of_an_invoice_that_is_open(machine: ConnectedMachine, session: LineSession) -> None:
    session.plan.add("refuse@35h#1")
    own = invoice()
    await machine.enter(own, "00084440Y", lambda _: ())
    with pytest.raises(MachineRefused) as refused:
        await machine.pay(own.payments)
    assert refused.value.is_open


async def test_nothing_is_paid_of_a_subtotal_that_is_not_agreed_to() -> None:
    """What `agree` raises is raised, and no 35h goes out; a refusal says how many commands were taken before it."""
    subtotal = ",".join(["15000", "0", "15000", *["0"] * 14, "0", "2288", *["0"] * 14, "0"]).encode()
    port = ScriptedPort(*map(answer, (b"", b"1,1", b"15000,12712,2288,0", b"", subtotal, b"", b"1,1", b"E:no rice")))
    machine = ConnectedMachine(LinkedMachine(link := Link(port)))

    def refuse(subtotal: Subtotal) -> Sequence[Payment]:
        raise MachineNonsense(f"{subtotal.total_ttc} is not ours")

    with pytest.raises(MachineNonsense, match="15000 is not ours"):
        await machine.enter(invoice(), "00084440Y", refuse)
    with pytest.raises(MachineRefused) as refused:
        await machine.enter(invoice(), "00084440Y", refuse)
    link.close()
    assert (refused.value.text, refused.value.is_open) == ("no rice", True)
    assert [cmd for _, cmd, _ in port.requests] == [0xC3, 0xC0, 0x31, 0x36, 0x33, 0xC3, 0xC0, 0x31]


@pytest.mark.parametrize(("expected", "ifu"), [("00099999Z", "00099999Z"), ("", "00084440Y")])
async def test_the_taxpayer_is_as_38h_says_else_as_the_machine_said_before(
    machine: ConnectedMachine, monkeypatch: pytest.MonkeyPatch, expected: str, ifu: str
) -> None:
    """A machine may leave its IFU out of 38h."""
    real = machine._machine.close_invoice

    async def close_invoice(*arguments: Any, **named: Any) -> Closed:
        return msgspec.structs.replace(await real(*arguments, **named), ifu=expected)

    own = await entered(machine)
    monkeypatch.setattr(machine._machine, "close_invoice", close_invoice)
    assert (await machine.certify(own, 15000, FiscalCounters(0, 0, 0))).ifu == ifu


@pytest.mark.parametrize("is_lost", [False, True])
async def test_what_somebody_else_did_just_before_is_in_the_counters(
    session: LineSession, machine: ConnectedMachine, is_lost: bool
) -> None:
    """Where TC moved by more than this invoice C1h tells the others; a line lost there leaves what 38h allows."""
    session.machine.certify_foreign(invoice_type="FA", total=500)
    own = await entered(machine)
    if is_lost:
        session.plan.add("silent@C1")
    certified = await machine.certify(own, 15000, FiscalCounters(0, 0, 0))
    assert certified.counters == FiscalCounters(2, 1, 0 if is_lost else 1)


async def test_another_machine_ends_the_connection_at_the_next_look(
    session: LineSession, machine: ConnectedMachine
) -> None:
    """Exchanged without the port noticing: both NIMs are named, and nothing more is sent to it. Some firmware leaves out the activation counter (protocol 3): the same machine."""
    session.machine.change(short_nim=True)
    assert (await machine.state()).nim == NIM.partition("-")[0]
    session.cut_power(asyncio.get_running_loop().time(), 0, OTHER)
    with pytest.raises(LineLost) as raised:
        await machine.state()
    assert OTHER.partition("-")[0] in str(raised.value)
    assert NIM in str(raised.value)
    assert await machine.lost() == str(raised.value)
    with pytest.raises(LineLost):
        await machine.pay([Payment("E", 1)])


async def test_a_certification_of_another_machine_is_not_taken_for_ours(
    session: LineSession, machine: ConnectedMachine
) -> None:
    """The answer to 38h names its NIM: what another machine says there settles nothing."""
    own = await entered(machine)
    session.machine.change(nim=OTHER)
    with pytest.raises(LineLost, match=OTHER):
        await machine.certify(own, 15000, FiscalCounters(0, 0, 0))


@pytest.mark.parametrize(
    ("expected", "is_ours"),
    [
        ({"type": "FT"}, False),
        ({"type": "FA"}, False),
        ({"type": "FV"}, True),
        ({"type": ""}, True),
        ({"type": "VENTE"}, True),
        ({"number": "F-2"}, False),
        ({"number": "F-2,F-1"}, False),
        ({"number": "F-1"}, True),
        ({"number": "f-1"}, True),
        ({"number": "f-1,7"}, True),
        ({"number": ""}, True),
    ],
)
async def test_a_certification_of_another_invoice_is_not_taken_for_ours(
    machine: ConnectedMachine, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str], is_ours: bool
) -> None:
    """38h with our number and the type of another invoice, or with another number, is nonsense; a word of the machine's own, or none, says
    nothing, and a number may be in capitals or have more behind it."""
    own = await entered(machine)
    real = LinkedMachine.close_invoice

    async def close_invoice(self: LinkedMachine, *arguments: object, **named: object) -> object:
        closed = await real(self, *arguments, **named)
        return msgspec.structs.replace(closed, **expected)

    monkeypatch.setattr(LinkedMachine, "close_invoice", close_invoice)
    if is_ours:
        assert (await machine.certify(own, 15000, FiscalCounters(0, 0, 0))).counters.tc == 1
        return
    with pytest.raises(MachineNonsense, match=next(iter(expected.values()))):
        await machine.certify(own, 15000, FiscalCounters(0, 0, 0))


C1H = b"EL02000015-1,00084440Y,20260731093000,9,7,2,20260731092959,FV,ABCDEFGHIJKLMNOPQRSTUVWX,F-1,15000" + b",0" * 16


@pytest.mark.parametrize(
    ("kind", "fc", "tc", "counters", "has_question"),
    [
        ("FV", 7, 9, FiscalCounters(9, 7, 2), False),
        ("FT", 7, 9, FiscalCounters(9, 7, 2), False),
        ("FA", 3, 9, FiscalCounters(9, 6, 3), False),
        ("FV", 3, 9, FiscalCounters(9, 7, 2), True),
        ("FA", 7, 9, FiscalCounters(9, 7, 2), True),
        ("EV", 7, 9, FiscalCounters(9, 7, 2), True),
        ("EA", 3, 9, FiscalCounters(9, 7, 2), True),
        ("FV", 7, 10, FiscalCounters(10, 7, 2), True),
        ("FV", 6, 8, FiscalCounters(8, 6, 2), False),
    ],
)
async def test_c1h_is_asked_only_where_38h_does_not_tell_the_counters(
    kind: Any, fc: int, tc: int, counters: FiscalCounters, has_question: bool
) -> None:
    """Known are TC 8, FVC 6, FRC 2. FC is one more than the counter of its own type, and TC one more than before; else something else has happened,
    or the machine counts in its own way. Where C1h lags behind, 38h stands. Which activation it is, 38h says only to whom C1h has said so."""
    result = f"{fc},{tc},{kind},20260731093001,EL02000015-1,00084440Y,ABCDEFGHIJKLMNOPQRSTUVWX,F-1"
    port = ScriptedPort(answer(result.encode()), answer(C1H))
    machine = ConnectedMachine(LinkedMachine(link := Link(port)))
    own = msgspec.structs.replace(invoice(), type=kind)
    certified = await machine.certify(own, 15000, FiscalCounters(8, 6, 2))
    assert (certified.counters, certified.nim) == (counters, NIM if has_question else "")
    link.close()
    assert [cmd for _, cmd, _ in port.requests] == [0x38, *([0xC1] if has_question else [])]


@pytest.mark.parametrize(("kind", "counters"), [("FV", FiscalCounters(10, 7, 2)), ("EV", None)])
async def test_where_c1h_has_no_answer_38h_has_to_tell_the_counters(kind: Any, counters: FiscalCounters | None) -> None:
    """What it says of a sale is enough; what it says of an export is not, and then the outcome is unknown for now."""
    result = f"7,10,{kind},20260731093001,EL02000015-1,00084440Y,ABCDEFGHIJKLMNOPQRSTUVWX,F-1"
    machine = ConnectedMachine(LinkedMachine(link := Link(ScriptedPort(answer(result.encode()), answer(b"E:busy")))))
    certifying = machine.certify(msgspec.structs.replace(invoice(), type=kind), 15000, FiscalCounters(8, 6, 2))
    if counters is None:
        with pytest.raises(MachineRefused, match="busy"):
            await certifying
    else:
        assert (await certifying).counters == counters
    link.close()


@pytest.mark.parametrize(
    ("first", "closed", "expected"),
    [
        (NIM, "EL02000015-2", "EL02000015-2"),
        (NIM, "EL02000015", ""),
        (NIM, "", ""),
        ("EL02000015", NIM, ""),
        ("EL02000015", "EL02000015", ""),
    ],
)
async def test_38h_names_the_activation_where_c1h_does_too(first: str, closed: str, expected: str) -> None:
    """Or the two would take turns."""
    certified = f"7,9,FV,20260731093001,{closed},00084440Y,ABCDEFGHIJKLMNOPQRSTUVWX,F-1"
    state = C1H.replace(NIM.encode(), first.encode())
    machine = ConnectedMachine(LinkedMachine(link := Link(ScriptedPort(answer(state), answer(certified.encode())))))
    await machine.state()
    assert (await machine.certify(invoice(), 15000, FiscalCounters(8, 6, 2))).nim == expected
    link.close()


@pytest.mark.parametrize(
    ("groups", "vat", "total", "whole"),
    [
        (["500.40", "1000.40"], ["0", "0"], "1500.80", [500, 1001]),
        (["1000.40", "500.40"], ["0", "0"], "1500.80", [1001, 500]),
        (["1000", "500"], ["0", "0"], "1500", [1000, 500]),
        (["500.60", "1000.40"], ["0", "0"], "1501", [501, 1000]),
        (["53", "100"], ["9.54", "0"], "162", [62, 100]),
        (["500.40", "1000.40"], ["0", "0"], "1503", [500, 1000]),
    ],
)
async def test_cents_that_were_rounded_away_are_found_in_the_groups_that_have_most_of_them(
    groups: list[str], vat: list[str], total: str, whole: list[int]
) -> None:
    """So that whole francs come to the total, also of a machine that rounds the total by itself (cents of VAT on each line in HT mode); a
    total that is further off is not corrected."""
    zeros = ["0"] * 14
    result = await read_subtotal(total, *groups, *zeros, *vat, *zeros, "0")
    assert [tax.ttc for tax in result.taxes] == whole


def test_a_number_with_a_comma_of_its_own_is_the_same() -> None:
    """`F,1` told back whole is ours, though what stands before the comma is not."""
    assert same_number("f,1", "F,1")
    assert not same_number("F", "F,1")
