"""Data of the shop, and the head and foot of every document (SFE 2.0, sections 3 to 5)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo

import msgspec

from common.language import Language, Speaker, Text
from daemon.core.invoice.invoice import CLIENTS, COMMENT_NAMES, NATURES
from daemon.paper.layout import Element, Logo, Pair, Rule, TextLine

CADASTRAL = re.compile(r"([0-9A-Za-z]{4}) ?([0-9A-Za-z]{3}) ?([0-9A-Za-z]{4})")


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """`name` and `address` come from the machine (2Bh) if it has been read, the rest from `[company]`. Empty values
    are not printed. `labels` are names of payment methods; `natures`, `clients` and `comments` are the law's names of
    the codes."""

    nim: str
    ifu: str = ""
    isf: str = ""
    name: str = ""
    address: tuple[str, ...] = ()
    cadastral: str = ""
    phone: str = ""
    email: str = ""
    accounts: tuple[str, ...] = ()
    regime: str = ""
    tax_office: str = ""
    labels: Mapping[str, str] = {}
    natures: Mapping[str, str] = msgspec.field(default_factory=lambda: NATURES)
    clients: Mapping[str, str] = msgspec.field(default_factory=lambda: CLIENTS)
    comments: Mapping[str, str] = msgspec.field(default_factory=lambda: COMMENT_NAMES)
    logo: bytes = b""
    """PNG."""
    zone: tzinfo = UTC
    is_test: bool = False


class Style(msgspec.Struct, frozen=True):
    """Language of a document. Terms of the law are printed in French, followed by their translation."""

    language: Language = "fr"
    is_duplicate: bool = False
    copy: int = 0
    """Number of the duplicate; 0 if not numbered."""

    @property
    def say(self) -> Speaker:
        return Speaker(self.language)

    def law(self, text: Text) -> str:
        return self.beside(text.in_language("fr"), text)

    def beside(self, french: str, text: Text) -> str:
        other = text.in_language(self.language)
        return french if self.language == "fr" or other == french else f"{french} / {other}"


def head(shop: Shop, style: Style) -> Iterator[Element]:
    say = style.say
    yield from _sign(shop)
    for line in shop.address:
        yield TextLine(line, align="center")
    if shop.cadastral:
        yield TextLine(say("Cadastral reference: {reference}", reference=cadastral(shop.cadastral)), align="center")
    if shop.phone:
        yield TextLine(say("Tel. {number}", number=shop.phone), align="center")
    if shop.email:
        yield TextLine(shop.email, align="center")
    if shop.ifu:
        yield TextLine(f"IFU {shop.ifu}", align="center")
    if shop.regime:
        yield TextLine(say("Tax regime: {regime}", regime=shop.regime), align="center")
    if shop.tax_office:
        yield TextLine(say("Tax office: {office}", office=shop.tax_office), align="center")
    for account in shop.accounts:
        yield TextLine(say("Account: {account}", account=account), align="center")
    yield Rule()


def _sign(shop: Shop) -> Iterator[Element]:
    if shop.logo:
        yield Logo(shop.logo)
    if shop.name:
        yield TextLine(shop.name, align="center", bold=True)


def mark_of_test(shop: Shop, style: Style, *, is_test: bool) -> Iterator[Element]:
    """Marks documents of a simulated machine, or of a real one in test mode: they are not invoices (decision 23)."""
    if shop.is_test or is_test:
        yield TextLine(style.say("* TEST - NO FISCAL VALUE *"), align="center", bold=True)


def machine(nim: str, isfs: Sequence[str]) -> Iterator[Element]:
    """`isfs` are the ISFs of the certifications."""
    yield Pair("NIM", nim)
    if isfs:
        yield Pair("ISF", ", ".join(isfs))


def is_cadastral(text: str) -> bool:
    """Section, block and plot (SFE 2.0, 3)."""
    return CADASTRAL.fullmatch(text) is not None


def cadastral(text: str) -> str:
    """Formatted as `SSSS LLL PPPP`; other text is returned unchanged."""
    found = CADASTRAL.fullmatch(text)
    return "\N{NO-BREAK SPACE}".join(found.groups()) if found else text
