"""What the doctor says of the printer and of the ISF."""

import msgspec
import pytest
from support.paper.png import png
from support.receivers.receipt_printer import NO_PAPER, ReceiptPrinter

from daemon.doctor.box import check_company, check_isf, check_logo, check_printer, check_upgrade
from daemon.settings import Machine, Place, Settings
from daemon.settings.model import Homologation
from daemon.settings.paper import Company, Printer

NIM = "EL02000015-1"


@pytest.fixture
def printer():
    with ReceiptPrinter() as one:
        yield one


def settings(isf="ISF-77", address=""):
    machine = Machine(nim=NIM, port=Place("/dev/null"), isf=isf)
    return Settings(machine=(machine,), printer=Printer(address=address) if address else None)


async def test_a_printer(printer, monkeypatch):
    """Its state is asked for and nothing printed; out of paper or gone is a failure with what to do, in the terminal's language."""
    monkeypatch.setenv("LC_ALL", "fr_BF.UTF-8")
    assert await check_printer(settings()) == []
    (found,) = await check_printer(settings(address=printer.address))
    assert (found.check, found.state) == ("printer", "ok")
    printer.offline = NO_PAPER
    (empty,) = await check_printer(settings(address=printer.address))
    assert (empty.state, empty.found) == ("fail", "l'imprimante n'a plus de papier")
    assert printer.jobs == []
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


@pytest.mark.parametrize(
    ("content", "state", "found"),
    [
        (png([[0, 255]]), "ok", "can be printed (2 × 1)"),
        (b"GIF89a", "warn", "cannot be printed: it is no PNG"),
        (None, "warn", "cannot be read: there is no such file"),
    ],
)
def test_a_logo_is_looked_at_before_the_first_ticket(tmp_path, monkeypatch, content, state, found):
    """One that will not come out is told with the reason; without one there is nothing to say."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    path = tmp_path / "logo.png"
    if content is not None:
        path.write_bytes(content)
    (finding,) = check_logo(Settings(machine=(), company=Company(logo=path)))
    assert (finding.state, finding.found) == (state, f"{path} {found}")
    assert list(check_logo(settings())) == []


def test_what_the_law_wants_on_an_invoice(monkeypatch):
    """Each of the three that only the shop knows is named while it is missing."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    (finding,) = check_company(Settings(machine=(), company=Company(regime="RNI")))
    assert (finding.state, finding.found) == (
        "warn",
        "invoices are printed without the cadastral reference, the tax office",
    )
    whole = Company(regime="RNI", tax_office="DME Centre I", cadastral="1234 056 0078")
    (finding,) = check_company(Settings(machine=(), company=whole))
    assert finding.state == "ok"


def test_a_version_with_another_core_waits(tmp_path, monkeypatch):
    """The night's job left a version for a person: doctor names it and how to take it; where the SFE was approved, it speaks of homologation."""
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    note = tmp_path / "mcfd-core-upgrade"
    assert list(check_upgrade(settings(), note)) == []
    note.write_text("0.9.0\n")
    (found,) = check_upgrade(settings(), note)
    assert (found.check, found.state) == ("upgrade", "warn")
    assert "0.9.0" in found.found
    assert "homologated" not in found.todo
    approved = msgspec.structs.replace(settings(), homologation=Homologation(core_digest="0" * 64))
    (found,) = check_upgrade(approved, note)
    assert "homologated" in found.todo
