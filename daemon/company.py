"""Whose paper it is: what the configuration says of the shop, put together with what the machine tells of itself."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from common.language import Language
from daemon.core.ledger.book import Book
from daemon.paper.png import LARGEST
from daemon.paper.shop import Shop
from daemon.settings import Settings

TAXPAYER_LINES = 6


def read_logo(path: Path | None) -> bytes:
    """Nothing where it cannot be read: paper comes without it, and `mcfd doctor` says why."""
    if path is None:
        return b""
    try:
        about = path.stat()
        return _logo(path, about.st_mtime_ns, about.st_size)
    except OSError:
        return b""


@lru_cache(maxsize=2)
def _logo(path: Path, _changed: int, size: int) -> bytes:
    return path.read_bytes() if size <= LARGEST else b""


def shop_of(settings: Settings, book: Book, ifu: str, taxpayer: tuple[str, ...], language: Language) -> Shop:
    """Name and address as the machine tells them (I0…I5 of 2Bh, empty when it has not been read), else as `[company]` does; phone
    and e-mail the other way round."""
    company = settings.company
    name, *address, city, phone, email = taxpayer or ("",) * TAXPAYER_LINES
    told = tuple(line for line in (*address, city) if line)
    machine = settings.find_machine(book.nim)
    return Shop(
        nim=book.nim,
        ifu=ifu,
        isf=machine.isf if machine else "",
        name=name or company.name,
        address=told or ((company.address,) if company.address else ()),
        cadastral=company.cadastral,
        phone=company.phone or phone,
        email=company.email or email,
        accounts=company.accounts,
        regime=company.regime,
        tax_office=company.tax_office,
        logo=read_logo(company.logo),
        labels=settings.labels_in(language),
        zone=settings.reports.zone,
        is_test=book.mode == "test",
    )
