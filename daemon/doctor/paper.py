"""What stands on paper, and the printer it comes out of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from common.language import ambient, sentence, tell, tr
from common.language.system import reason
from daemon.core.certified_core import WAITING, waiting_version
from daemon.core.errors import PrinterFailed
from daemon.doctor.wording import CheckResult, fail, ok, warn
from daemon.owner import as_owner
from daemon.paper.logo import NotAPicture, read_png
from daemon.paper.shop import is_cadastral
from daemon.printer import ReceiptPrinter
from daemon.settings import Settings

NO_ISF: Final = "1"
"""What the examples have: no ISF that the tax authority has given out."""


def check_isf(settings: Settings) -> Iterator[CheckResult]:
    """An invented ISF on real invoices is a fault in the eyes of the tax authority."""
    for machine in settings.machine:
        if machine.enabled and machine.isf == NO_ISF:
            yield warn(
                "isf",
                tr("the ISF is {isf}, which is only an example", isf=machine.isf),
                tr("set isf in [[machine]] to the one that the tax authority gave the till software"),
                nim=machine.nim,
            )


def check_homologation(settings: Settings, running: str) -> Iterator[CheckResult]:
    """`running`: the digest of the core that runs. Each change of the core wants a new homologation (arrêté 2025-0047, art. 10 and 11)."""
    approved = settings.homologation.core_digest
    if approved is None:
        return
    if approved == running:
        yield ok("homologation", tr("the certified core that runs is the one that was approved"))
    else:
        yield warn(
            "homologation",
            tr("the certified core that runs ({running}) is not the one that was approved", running=running[:12]),
            tr(
                "have this version homologated, and set core_digest in [homologation]; or go back to the approved version"
            ),
        )


def check_upgrade(settings: Settings, note: Path = WAITING) -> Iterator[CheckResult]:
    """A version that upgrade-mcfd.service did not take by itself, since its certified core is another one."""
    waiting = waiting_version(note)
    if not waiting:
        return
    found = tr("version {version} is there; its certified core is another one than that which runs", version=waiting)
    if settings.homologation.core_digest:
        todo = tr("sudo mcfd upgrade --core, once this version has been homologated")
    else:
        todo = tr("sudo mcfd upgrade --core, when the shop is closed")
    yield warn("upgrade", found, todo)


def check_company(settings: Settings) -> Iterator[CheckResult]:
    """What the law wants on an invoice and only the shop knows (SFE 2.0, section 3)."""
    company = settings.company
    wanted = (
        ("cadastral", company.cadastral, tr("the cadastral reference")),
        ("regime", company.regime, tr("the tax regime")),
        ("tax_office", company.tax_office, tr("the tax office")),
    )
    if missing := [(name, words) for name, value, words in wanted if not value]:
        names, words = (", ".join(column) for column in zip(*missing, strict=True))
        yield warn(
            "company",
            tr("invoices are printed without {missing}", missing=words),
            tr("if mcfd prints your invoices, set in [company]: {names}", names=names),
        )
    is_odd = bool(company.cadastral) and not is_cadastral(company.cadastral)
    if is_odd:
        yield warn(
            "company",
            tr("{reference!r} is no cadastral reference (section, block, plot)", reference=company.cadastral),
            tr("set cadastral in [company] as 1234 056 0078: four, three and four characters"),
        )
    if not missing and not is_odd:
        yield ok("company", tr("everything that stands on an invoice is there"))


def check_logo(settings: Settings) -> Iterator[CheckResult]:
    if (path := settings.company.logo) is None:
        return
    todo = tr("a PNG that the daemon's user may read: logo in [company]")
    try:
        with as_owner(settings.storage.path.parent):
            picture = read_png(path.read_bytes())
    except OSError as error:
        yield warn("logo", tr("{path} cannot be read: {why}", path=path, why=reason(error)), todo)
    except NotAPicture as error:
        yield warn("logo", tr("{path} cannot be printed: {why}", path=path, why=tell(error.text, ambient())), todo)
    else:
        size = f"{picture.width} × {picture.height}"
        yield ok("logo", tr("{path} can be printed ({size})", path=path, size=size))


async def check_printer(settings: Settings) -> list[CheckResult]:
    """Asks the printer for its state; nothing is printed."""
    printer = settings.printer
    if printer is None:
        return []
    try:
        await ReceiptPrinter(printer.address, min(printer.timeout, PATIENCE_SECONDS)).check()
    except PrinterFailed as error:
        why = tell(sentence(error), ambient())
        return [fail("printer", why, tr("paper in, cover closed, switched on? its address: address in [printer]"))]
    return [ok("printer", tr("{address} answers", address=printer.address))]


PATIENCE_SECONDS: Final = 3.0
