"""What the doctor says of the printer and of the ISF."""

import msgspec
import pytest
from support.receivers.receipt_printer import NO_PAPER, ReceiptPrinter

from daemon.doctor.paper import check_isf, check_printer
from daemon.settings import Machine, Place, Settings
from daemon.settings.paper import Printer

NIM = "EL02000015-1"


@pytest.fixture
def printer():
    with ReceiptPrinter() as one:
        yield one


def settings(isf="ISF-77", address=""):
    machine = Machine(nim=NIM, port=Place("/dev/null"), isf=isf)
    return Settings(machine=(machine,), printer=Printer(address=address) if address else None)


async def test_a_printer_that_could_print(printer):
    """Its state is asked for and nothing is printed; without `[printer]` there is nothing to find."""
    (found,) = await check_printer(settings(address=printer.address))
    assert (found.check, found.state) == ("printer", "ok")
    assert printer.jobs == []
    assert await check_printer(settings()) == []


async def test_a_printer_that_could_not(printer, monkeypatch):
    """Out of paper, or gone: a failure in the language of the terminal, with what to do."""
    monkeypatch.setenv("LC_ALL", "fr_BF.UTF-8")
    printer.offline = NO_PAPER
    (empty,) = await check_printer(settings(address=printer.address))
    assert (empty.state, empty.found) == ("fail", "l'imprimante n'a plus de papier")
    (gone,) = await check_printer(settings(address="tcp://127.0.0.1:1"))
    assert gone.state == "fail"
    assert gone.todo


def test_an_invented_isf():
    """The ISF of the examples on a machine in use is a warning; a real one, or a machine switched off, is none."""
    (found,) = check_isf(settings(isf="1"))
    assert (found.check, found.state, found.nim) == ("isf", "warn", NIM)
    assert list(check_isf(settings())) == []
    off = settings(isf="1")
    off = msgspec.structs.replace(off, machine=(msgspec.structs.replace(off.machine[0], enabled=False),))
    assert list(check_isf(off)) == []
