"""The shop's data on paper: the configuration combined with the machine's own data."""

from functools import lru_cache
from pathlib import Path

from common.files import read_file
from common.language import Language
from daemon.core.invoice.invoice import CLIENTS, COMMENT_NAMES, NATURES
from daemon.core.ledger.book import Book
from daemon.core.machine.state import TAXPAYER_LINES
from daemon.core.report.report_parts import Letterhead
from daemon.paper.logo import LARGEST
from daemon.paper.shop import Shop
from daemon.settings import Settings
from daemon.settings.paper import LABELS


def read_logo(path: Path | None) -> bytes:
    """Empty if it cannot be read: documents then have no logo, and `mcfd doctor` reports why."""
    if path is None:
        return b""
    try:
        about = path.stat()
        return _logo(path, about.st_mtime_ns, about.st_size)
    except OSError:
        return b""


@lru_cache(maxsize=2)
def _logo(path: Path, _changed: int, size: int) -> bytes:
    return read_file(path) if size <= LARGEST else b""


def letterhead_of(settings: Settings, taxpayer: tuple[str, ...]) -> Letterhead:
    """Name and address are the machine's (I0…I5 of 2Bh), else those of `[company]`; phone and e-mail vice versa."""
    company = settings.company
    *_, phone, email = taxpayer or ("",) * TAXPAYER_LINES
    return Letterhead(
        taxpayer=taxpayer,
        name=company.name,
        address=company.address,
        cadastral=company.cadastral,
        phone=company.phone or phone,
        email=company.email or email,
        accounts=company.accounts,
        regime=company.regime,
        tax_office=company.tax_office,
        labels={language: settings.labels_in(language) for language in LABELS},
        natures={**NATURES, **settings.invoices.nature_names},
        clients={**CLIENTS, **settings.invoices.client_names},
        comments={**COMMENT_NAMES, **settings.invoices.comment_names},
        logo=read_logo(company.logo),
    )


def shop_of(
    settings: Settings,
    book: Book,
    ifu: str,
    taxpayer: tuple[str, ...],
    language: Language,
    *,
    letterhead: Letterhead | None = None,
) -> Shop:
    """`letterhead` is a record's or closure's; None: the present one. A name not sent by then is the present one."""
    head = letterhead or letterhead_of(settings, taxpayer)
    name, *address, city, phone, email = head.taxpayer or taxpayer or ("",) * TAXPAYER_LINES
    lines = tuple(line for line in (*address, city) if line)
    machine = settings.find_machine(book.nim)
    return Shop(
        nim=book.nim,
        ifu=ifu,
        isf=machine.isf if machine else "",
        name=name or head.name,
        address=lines or ((head.address,) if head.address else ()),
        cadastral=head.cadastral,
        phone=head.phone or phone,
        email=head.email or email,
        accounts=head.accounts,
        regime=head.regime,
        tax_office=head.tax_office,
        logo=head.logo,
        labels=head.labels[language],
        natures=head.natures,
        clients=head.clients,
        comments=head.comments,
        zone=settings.reports.zone,
        is_test=book.mode == "test",
    )
