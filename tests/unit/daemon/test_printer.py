"""The printer of the box against one on a socket that behaves as printers do."""

import asyncio
import os
import pty
import tty

import pytest
from support.processor import within
from support.receivers.receipt_printer import COVER_OPEN, NO_PAPER, NO_PAPER_SENSOR, ReceiptPrinter

from daemon import printer as ours
from daemon.core.errors import PrinterFailed

TICKET = b"\x1b@" + b"Riz 25 kg            15 000\n" * 200 + b"\x1dVB\x00"


@pytest.fixture
def socket_printer():
    with ReceiptPrinter() as one:
        yield one


def test_the_printers_on_usb_that_know_the_commands(tmp_path):
    """Those that name ESC/POS, however they spell it; a laser printer would print the commands as text."""
    result = (
        "MFG:EPSON;CMD:ESC/POS;MDL:TM-T20II;CLS:PRINTER;",
        "MFG:HP;CMD:PCL,PJL;MDL:LaserJet;",
        "MFG:X;CMD:Esc-Pos;",
    )
    for number, text in enumerate(result):
        (tmp_path / f"lp{number}/device").mkdir(parents=True)
        (tmp_path / f"lp{number}/device/ieee1284_id").write_text(text)
    (tmp_path / "lp3/device").mkdir(parents=True)
    (tmp_path / "hiddev0").mkdir()
    assert ours.usb_printers(tmp_path) == ["/dev/usb/lp0", "/dev/usb/lp2"]
    assert ours.usb_printers(tmp_path / "without USB") == []


@pytest.mark.parametrize("is_silent", [False, True])
async def test_what_is_sent_is_printed(socket_printer, is_silent):
    """Every byte arrives, in order, and `print` returns once the printer has taken it; also behind an adapter that passes no answer back."""
    if is_silent:
        socket_printer.offline = socket_printer.paper = None
    await ours.ReceiptPrinter(socket_printer.address, 5).print(TICKET)
    assert len((await asyncio.to_thread(socket_printer.wait)).lines) == 200
    assert socket_printer.jobs == [TICKET]


@pytest.mark.parametrize(
    ("offline", "paper", "reason"),
    [
        (COVER_OPEN, b"\x12", ours.PRINTER_COVER_OPEN),
        (NO_PAPER, b"\x12", ours.PRINTER_OUT_OF_PAPER),
        (b"\x12", NO_PAPER_SENSOR, ours.PRINTER_OUT_OF_PAPER),
        (b"\x52", b"\x12", ours.PRINTER_FAULT),
    ],
)
async def test_a_printer_in_trouble_is_sent_nothing(socket_printer, offline, paper, reason):
    """Without paper, or with its cover open, it says so, and no half of a ticket waits in it."""
    socket_printer.offline, socket_printer.paper = offline, paper
    with pytest.raises(PrinterFailed, match=reason):
        await ours.ReceiptPrinter(socket_printer.address, 5).print(TICKET)
    assert socket_printer.jobs == []


async def test_a_slow_printer_is_given_up(socket_printer):
    """After its time-out it is told as too slow; the one who asked waits no longer than that."""
    socket_printer.takes = 10
    with pytest.raises(PrinterFailed, match=ours.PRINTER_TOO_SLOW), within(5):
        await ours.ReceiptPrinter(socket_printer.address, 0.5).print(TICKET * 2000)


@pytest.mark.parametrize("times", [1, 2000])
async def test_a_printer_that_is_switched_off_in_the_middle(socket_printer, times):
    """It cuts the connection after the first bytes: the document counts as not printed, whether or not all of it was on its way."""
    socket_printer.takes, socket_printer.resets = 10, True
    with pytest.raises(PrinterFailed, match="the connection was cut"):
        await ours.ReceiptPrinter(socket_printer.address, 5).print(TICKET * times)


async def test_a_printer_that_is_gone(tmp_path):
    """Nobody at its address is one clear reason, and so is a device that is not there. A wrong path never overwrites a file of the box."""
    file = tmp_path / "important"
    file.write_bytes(b"kept")
    reachable = "cannot be reached"
    for address, reason in (
        ("tcp://127.0.0.1:1", reachable),
        ("/dev/usb/lp-none", reachable),
        (str(file), "not a device"),
    ):
        with pytest.raises(PrinterFailed, match=reason):
            await ours.ReceiptPrinter(address, 5).print(TICKET)
    assert file.read_bytes() == b"kept"


async def test_a_device_of_the_kernel_gets_every_byte():
    """A device that takes a little at a time, as a USB printer does, gets the whole document."""
    there, here = pty.openpty()
    tty.setraw(here)
    os.set_blocking(there, False)
    received = bytearray()

    async def read():
        while len(received) < len(TICKET):
            try:
                received.extend(os.read(there, 512))
            except BlockingIOError:
                await asyncio.sleep(0.001)

    try:
        await asyncio.gather(ours.ReceiptPrinter(os.ttyname(here), 10).print(TICKET), read())
    finally:
        os.close(there)
        os.close(here)
    assert bytes(received) == TICKET
