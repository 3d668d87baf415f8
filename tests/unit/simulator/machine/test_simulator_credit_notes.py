"""Credit notes: the tax server's check, in the three ways it is waited for."""

from support.simulator.simulator_till import Till, Wire, events, is_syn, opening

from bridge.frame import MachineReply
from simulator.line.session import LineSession, Sent
from simulator.machine.fiscal_memory import CertifiedInvoice
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.machine.working_state import Stage

CREDIT = {"kind": "FA", "credit": "COR,RRR"}


def test_pending_is_asked_again():
    """`P:` until the check ends; then the same question, asked with a new SEQ, has the answer."""
    till = Till(credit_check=30.0)
    till.enter_and_pay("A-1", **CREDIT)
    assert till.ask(0x38, "15000.00").startswith("P:")
    till.clock.advance(29)
    assert till.ask(0x38, "15000.00").startswith("P:")
    till.clock.advance(1)
    assert till.take(0x38, "15000.00").split(",")[:3] == ["1", "1", "FA"]
    assert till.take(0x38, "15000.00").split(",")[:3] == ["1", "1", "FA"]
    assert till.state()[3:6] == ["1", "0", "1"]


def test_pending_ends_without_being_asked():
    """The machine certifies when the tax server answers, whether the till is still there or not. 38h C during the check: one was open, and it is not certified later."""
    for cancels in (False, True):
        till = Till(credit_check=30.0)
        till.enter_and_pay("A-1", **CREDIT)
        till.take(0x38, "15000.00")
        assert till.state()[3] == "0"
        if cancels:
            till.take(0x38, "C")
        till.clock.advance(31)
        assert (till.state()[3], till.state()[9]) == (("0", "") if cancels else ("1", "A-1"))
        assert till.machine.stage is Stage.IDLE


def test_the_tax_server_must_be_there():
    """Credit notes need it, sales do not."""
    till = Till()
    till.machine.fiscal.reachable = False
    till.certify("F-1")
    till.enter_and_pay("A-1", **CREDIT)
    assert till.ask(0x38, "15000.00") == "E:No contact with the tax server"
    till.machine.fiscal.reachable = True
    till.take(0x38, "15000.00")


def test_the_original_must_be_known():
    """A reference to this machine needs an FVC that it has given out; one to another machine passes."""
    till = Till()
    till.certify("F-1")
    till.certify("A-1", kind="FA", credit="RAM,EL02000015-1-1")
    till.certify("A-2", kind="FA", credit="RAN,EL07000001-3-99")
    till.enter_and_pay("A-3", kind="EA", credit="COR,EL02000015-2")
    assert till.ask(0x38, "15000.00") == "E:Original invoice unknown"


def wire_with(**options: object) -> Wire:
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions(credit_check=0.35, **options))))
    steps = [(0xC0, opening("A-1", **CREDIT)), (0x31, "x\tLOCBIE,A0.00%100\t100"), (0x33, ""), (0x35, "E100")]
    for seq, (command, text) in enumerate(steps, 0x21):
        assert not wire.text(seq, command, text).startswith("E:")
    return wire


def log_of(wire: Wire) -> list[CertifiedInvoice]:
    return list(wire.session.machine.fiscal.log)


def test_silent_is_plain_silence():
    """Nothing at all for the time of the check, then the answer; what came meanwhile is repeated, not executed."""
    wire = wire_with(credit_style="silent")
    assert wire.send(0x30, 0x38, "100.00") == []
    assert wire.look(after=0.3) == []
    assert wire.send(0x30, 0x38, "100.00") == []
    assert not log_of(wire)
    first, second = wire.look(after=0.05)
    assert first == second
    assert isinstance(first, MachineReply)
    assert first.data.startswith(b"1,1,FA,")
    assert len(log_of(wire)) == 1


def test_syn_comes_every_100_ms_meanwhile():
    """A firmware that says that it works: three SYN within 350 ms, at the right times."""
    wire = wire_with(credit_style="syn")
    start = wire.now
    assert wire.send(0x30, 0x38, "100.00") == []
    found = [event for _ in range(8) for event in wire.look(after=0.05)]
    assert [is_syn(event) for event in found] == [True, True, True, False]
    times = [output.at - start for output in wire.outputs if isinstance(output, Sent) and is_syn(*events(output.data))]
    assert [round(time, 6) for time in times] == [0.1, 0.2, 0.3]
