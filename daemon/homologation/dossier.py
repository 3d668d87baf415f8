"""The dossier of homologation as a folder of PDFs in French (procedure of 29 December 2025, 3.2). Pages of the
documentation (Markdown) become PDF by markdown-it."""

from __future__ import annotations

import gzip
import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from common.files import write_whole
from common.language import Text
from daemon.core.certified_core import CORE_VERSION, core_digest
from daemon.homologation.cases import CaseResult, read_cases
from daemon.paper.layout import Rule, TextLine, Title
from daemon.paper.pdf import SIZE, draw, new_pdf

if TYPE_CHECKING:
    from fpdf import FPDF

HEADINGS: Final = {"h1": 15, "h2": 12, "h3": 10}
"""Points."""
HTML: Final = {
    **dict.fromkeys(("em_open", "em_close", "strong_open", "strong_close", "link_open", "link_close"), ""),
    "paragraph_open": '<p line-height="1.35">',
    "bullet_list_open": '<ul line-height="1.35">',
    "ordered_list_open": '<ol line-height="1.35">',
    "table_open": '<table border="1">',
    "th_open": '<th align="left">',
    "td_open": '<td align="left">',
}
"""HTML for parts of Markdown for which fpdf2 needs another form than a browser; empty: plain text on paper."""

VERSION: Final = version("mcfd")
RESULTS: Final = "cas-de-test.json"
PAPERS: Final = "papiers"
STATES: Final = {"passed": "conforme", "failed": "NON CONFORME", "by hand": "à montrer à la main"}
MANUALS: Final = {
    "manuel-d-utilisation.pdf": ("Manuel d'utilisation", ("manuel", "install", "first-contact", "troubleshooting")),
    "manuel-de-controle.pdf": ("Manuel de contrôle", ("controle",)),
    "brochure.pdf": ("Brochure", ("brochure",)),
}
"""Each with its pages of the French documentation, `docs/NAME.fr.md`."""
DOCUMENTATION: Final = (Path(__file__).parents[2] / "docs", Path("/usr/share/doc/mcfd"))
"""In a checkout, and in the package."""

HERE = Path(__file__).parent

By = Literal["mcfd", "mcfd aide", "caisse", "machine", "entreprise"]
"""Who fulfils a clause: mcfd, mcfd in part, the till, the machine, or the shop."""
BY_WHOM: Final = (
    "mcfd : mcfd le fait. mcfd aide : mcfd en fait une partie. caisse, machine, entreprise : à la charge de celle-ci."
)


def write_pages(pdf: FPDF, folder: Path, names: Sequence[str]) -> None:
    """Each page after the first begins on a new sheet. Text, lists, code, tables; pictures if Pillow can read them."""
    from fpdf import FontFace, TextStyle  # noqa: PLC0415  for this command alone, as below
    from markdown_it import MarkdownIt  # noqa: PLC0415

    markdown = MarkdownIt("commonmark").enable("table")
    for name, html in (*HTML.items(), *(() if find_spec("PIL") else (("image", ""),))):
        markdown.add_render_rule(name, lambda _, tokens, at, *__, html=html: "" if tokens[at].hidden else html)
    markdown.add_render_rule("code_inline", lambda _, tokens, at, *__: escape(tokens[at].content))
    styles: dict[str, TextStyle | FontFace] = {
        name: TextStyle(font_style="B", font_size_pt=size, color=0, t_margin=3, b_margin=1)
        for name, size in HEADINGS.items()
    }
    styles |= {"p": TextStyle(b_margin=1.5), "code": FontFace(family="DejaVuMono", size_pt=SIZE - 1.5)}
    styles["pre"] = TextStyle(font_family="DejaVuMono", font_size_pt=SIZE - 1.5, b_margin=2)
    for number, name in enumerate(names):
        if number:
            pdf.add_page()
        text = markdown.render(_read(folder / name))
        pdf.set_font("DejaVu", size=SIZE)
        pdf.write_html(
            text,
            image_map=lambda source: str(folder / source),
            font_family="DejaVu",
            li_prefix_color=0,
            tag_styles=styles,
        )


def _read(file: Path) -> str:
    """Also compressed: debhelper compresses long pages."""
    if file.is_file():
        return file.read_text(encoding="utf-8")
    return gzip.decompress(file.with_name(f"{file.name}.gz").read_bytes()).decode()


class NoDocumentation(Exception):
    """The French pages are not on this box."""


def write_dossier(folder: Path, installers: Sequence[Path] = ()) -> list[Path]:
    """Writes table of conformity, test cases (with results that `run` left in the folder), manuals, brochure,
    installers, and SHA256SUMS of all. Returns the files in their order. Raises NoDocumentation, OSError."""
    source = next((place for place in DOCUMENTATION if any(place.glob("manuel.fr.md*"))), None)
    if source is None:
        raise NoDocumentation(
            Text("the pages of the manuals are not on this box: {place} is missing", place=str(DOCUMENTATION[1]))
        )
    folder.mkdir(parents=True, exist_ok=True)
    written = [_conformity(folder), write_cases(folder)]
    for name, (title, pages) in MANUALS.items():
        pdf = _begun(title)
        write_pages(pdf, source, [f"{page}.fr.md" for page in pages])
        written.append(_ended(pdf, folder / name))
    written += [_written(folder / installer.name, installer.read_bytes()) for installer in installers]
    papers = sorted((folder / PAPERS).glob("*.pdf"))
    sums = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder)}\n" for file in (*written, *papers)
    )
    return [*written, _written(folder / "SHA256SUMS", sums.encode())]


def write_cases(folder: Path) -> Path:
    """The test cases as PDF, with the results in the folder."""
    results = {}
    if (folder / RESULTS).is_file():
        found = msgspec.json.decode((folder / RESULTS).read_bytes(), type=list[CaseResult])
        results = {result.id: result for result in found}
    pdf = _begun("Cas de test")
    counted = {state: sum(result.state == state for result in results.values()) for state in STATES}
    summary = (
        " · ".join(f"{STATES[state]} : {count}" for state, count in counted.items()) if results else "non exécutés"
    )
    draw(pdf, (TextLine(summary, bold=True), TextLine()))
    rows = []
    for case in read_cases():
        result = results.get(case.id)
        words = (STATES[result.state], result.detail or result.code) if result else ()
        rows.append((case.id, ", ".join(case.clauses), case.title, " ".join(filter(None, words)) or "–"))
    _table(pdf, ("Cas", "Clauses", "Ce qui est fait", "Résultat"), rows, (24, 26, 70, 54))
    return _ended(pdf, folder / "cas-de-test.pdf")


def _conformity(folder: Path) -> Path:
    pdf = _begun("Tableau de conformité")
    draw(pdf, (TextLine(BY_WHOM), TextLine()))
    for text in read_texts():
        draw(pdf, (TextLine(text.title, bold=True), TextLine()))
        rows = []
        for clause in text.clauses:
            answer = "\n".join(filter(None, (clause.answer, clause.test.removeprefix("tests/"))))
            rows.append((clause.number, clause.asks, clause.by, answer or "–"))
        _table(pdf, ("Clause", "Exigence", "Par", "Réponse, et l'essai qui la montre"), rows, (20, 54, 20, 80))
        draw(pdf, (TextLine(),))
    return _ended(pdf, folder / "tableau-de-conformite.pdf")


def _begun(title: str) -> FPDF:
    pdf = new_pdf("fr", f"mcfd {VERSION} – {title}")
    day = datetime.now(UTC).strftime("%d/%m/%Y")
    product = TextLine(f"mcfd {VERSION}, système de facturation d'entreprise (SFE) – {day}", "center")
    core = TextLine(f"Noyau certifié {CORE_VERSION}, empreinte {core_digest()}", "center")
    draw(pdf, (Title(title), product, core, Rule()))
    return pdf


def _table(pdf: FPDF, head: tuple[str, ...], rows: Iterable[tuple[str, ...]], widths: tuple[int, ...]) -> None:
    pdf.set_font("DejaVu", size=7.5)
    with pdf.table(col_widths=widths, line_height=3.6, text_align="LEFT", padding=0.6) as table:
        for row in (head, *rows):
            table.row(row)


def _ended(pdf: FPDF, file: Path) -> Path:
    return _written(file, bytes(pdf.output()))


def _written(file: Path, content: bytes) -> Path:
    write_whole(file, content, 0o644)
    return file


class Clause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`test` is a file of tests/ or one test in pytest's notation; a clause fulfilled by mcfd has one."""

    number: str
    asks: str
    by: By
    answer: str = ""
    test: str = ""


class LawText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    clauses: tuple[Clause, ...] = msgspec.field(name="clause")


class _ClausesFile(msgspec.Struct, frozen=True):
    texts: tuple[LawText, ...] = msgspec.field(name="text")


def read_texts() -> tuple[LawText, ...]:
    return msgspec.convert(tomllib.loads((HERE / "clauses.toml").read_text(encoding="utf-8")), _ClausesFile).texts
