"""Renders a document as PDF on A4 with fpdf2 and embedded fonts.

fpdf2 takes 42 MB and a second to load, so a separate process makes each document and releases the memory."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from common.process import own_program
from daemon.paper.layout import Document, Element, Logo, Pair, QrCode, Rule, Table, TextLine, Title
from daemon.paper.logo import WHITE, NotAPicture, qr_modules, read_png

if TYPE_CHECKING:
    from fpdf import FPDF

PaperSize = Literal["A4", "A5"]
FONTS: Final = Path(__file__).parent / "fonts"
"""DejaVu, reduced to the letters of European languages and those of Burkina Faso."""
SIZE: Final = 9
"""Size of normal text in points."""
LINE: Final = 4.3
MARGIN: Final = 18
COLUMN: Final = 2.2
"""Millimetres: height of a line, margins, and one column of indentation."""
SIGN: Final = ("EXIGEZ LA", "FACTURE ELECTRONIQUE", "CERTIFIEE")
"""Sign to be displayed at each till, in the words of the law (arrêté 2025-0049, art. 6 c)."""
_LONGEST_S: Final = 60


class PdfFailed(Exception):
    """The PDF process failed; its reason is in the log."""


def as_pdf(document: Document) -> bytes:
    """A4, portrait. Blocks for about a second: call it in a thread. Raises PdfFailed if the process fails."""
    return _in_process("document", msgspec.msgpack.encode(document))


def poster(size: PaperSize) -> bytes:
    """The sign of arrêté 2025-0049, art. 6 c, on one landscape page in the largest letters that fit. Blocks and raises
    like `as_pdf`."""
    return _in_process("poster", size.encode())


def _in_process(kind: str, data: bytes) -> bytes:
    try:
        process = subprocess.run(  # noqa: S603  this module, with our own data on standard input
            [*own_program("from daemon.paper.pdf import main; main()"), kind],
            input=data,
            capture_output=True,
            check=False,
            timeout=_LONGEST_S,
        )
    except subprocess.TimeoutExpired as error:
        raise PdfFailed(str(error)) from None
    if process.returncode:
        raise PdfFailed(process.stderr.decode(errors="replace")[-300:])
    return process.stdout


def new_pdf(language: str, title: str, size: PaperSize = "A4", orientation: Literal["P", "L"] = "P") -> FPDF:
    with warnings.catch_warnings(action="ignore"):  # Pillow, which the package leaves out (packaging/libraries.py)
        from fpdf import FPDF  # noqa: PLC0415  42 MB, in this process alone

    pdf = FPDF(orientation=orientation, format=size)
    pdf.set_lang(language)
    pdf.set_title(title)
    pdf.set_creator("mcfd")
    pdf.set_margin(MARGIN)
    pdf.add_font("DejaVu", fname=FONTS / "sans.ttf")
    pdf.add_font("DejaVu", "B", FONTS / "sans-bold.ttf")
    pdf.add_font("DejaVuMono", fname=FONTS / "mono.ttf")
    pdf.set_font("DejaVu", size=SIZE)
    pdf.normalize_text = partial(_drawable, pdf)  # type: ignore[method-assign]  # fpdf2 leaves out what a font lacks
    pdf.add_page()
    return pdf


def _drawable(pdf: FPDF, text: str) -> str:
    """The text with `?` for each character that the current font lacks, as on the receipt printer."""
    cmap = pdf.current_font.cmap  # type: ignore[union-attr]  # all fonts here are TrueType
    return "".join(each if ord(each) in cmap or each == "\n" else "?" for each in text)


def draw(pdf: FPDF, elements: Sequence[Element]) -> None:
    for element, below in zip_longest(elements, elements[1:]):
        _avoid_break(pdf, element, below)
        match element:
            case Title(text):
                _centred(pdf, text, SIZE * 1.5, bold=True)
                pdf.ln(1)
            case TextLine(text, "center", bold, _):
                _centred(pdf, text, SIZE, bold=bold)
            case TextLine(text, _, bold, indent):
                _style(pdf, SIZE, bold=bold)
                pdf.set_x(MARGIN + indent * COLUMN)
                pdf.multi_cell(0, LINE, text or " ", align="L", new_x="LMARGIN", new_y="NEXT")
            case Pair():
                _pair(pdf, element)
            case Table(head, rows):
                _table(pdf, head, rows)
            case Rule():
                pdf.line(MARGIN, pdf.y + 2, pdf.w - MARGIN, pdf.y + 2)
                pdf.ln(4)
            case QrCode(content):
                _qr(pdf, content)
            case Logo(png):
                _logo(pdf, png)


def _avoid_break(pdf: FPDF, element: Element, below: Element | None) -> None:
    """Begins a page for a line and the indented one below it, as an article and its price, if both do not fit."""
    if getattr(below, "indent", 0) > getattr(element, "indent", 0) and pdf.will_page_break(2 * LINE):
        pdf.add_page()


def _style(pdf: FPDF, size: float, *, bold: bool) -> None:
    pdf.set_font("DejaVu", "B" if bold else "", size)


def _centred(pdf: FPDF, text: str, size: float, *, bold: bool) -> None:
    _style(pdf, size, bold=bold)
    pdf.multi_cell(0, size / 2, text, align="C", new_x="LMARGIN", new_y="NEXT")


def _pair(pdf: FPDF, pair: Pair) -> None:
    _style(pdf, SIZE, bold=pair.bold)
    left = MARGIN + pair.indent * COLUMN
    right = pdf.get_string_width(pair.right) + 2
    room = pdf.w - MARGIN - left
    if pdf.get_string_width(pair.left) + right + 2 <= room:
        pdf.set_x(left)
        pdf.cell(room - right, LINE, pair.left)
        pdf.cell(right, LINE, pair.right, align="R", new_x="LMARGIN", new_y="NEXT")
        return
    pdf.set_x(left)
    pdf.multi_cell(room, LINE, pair.left, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.multi_cell(0, LINE, pair.right, align="R", new_x="LMARGIN", new_y="NEXT")


def _table(pdf: FPDF, head: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    from fpdf.enums import TableBordersLayout  # noqa: PLC0415  see `new_pdf`

    _style(pdf, SIZE - 1, bold=False)
    widths = [max(pdf.get_string_width(f"{line[at]}  ") for line in (head, *rows)) + 3 for at in range(len(head))]
    widths[0] = max(widths[0], pdf.epw - sum(widths[1:]))
    with pdf.table(
        borders_layout=TableBordersLayout.SINGLE_TOP_LINE,
        col_widths=tuple(widths),
        line_height=LINE,
        text_align=("LEFT", *("RIGHT",) * (len(head) - 1)),
    ) as table:
        for line in (head, *rows):
            table.row(line)
    pdf.ln(1)


def _qr(pdf: FPDF, content: str) -> None:
    matrix = qr_modules(content)
    dot = 1.0
    side = dot * len(matrix)
    if pdf.will_page_break(side + 6):
        pdf.add_page()
    top, left = pdf.y + 3, (pdf.w - side) / 2
    _rects(pdf, matrix, left, top, dot)
    pdf.set_y(top + side + 3)


def _logo(pdf: FPDF, png: bytes) -> None:
    """Black dots, as on the receipt printer; an unreadable PNG is omitted (`mcfd doctor` reports the reason)."""
    try:
        picture = read_png(png)
    except NotAPicture:
        return
    dot = min(60 / picture.width, 30 / picture.height)
    _rects(
        pdf,
        [[shade <= WHITE // 2 for shade in row] for row in picture.rows],
        (pdf.w - dot * picture.width) / 2,
        pdf.y,
        dot,
    )
    pdf.set_y(pdf.y + dot * picture.height + 2)


def _rects(pdf: FPDF, rows: list[list[bool]], left: float, top: float, dot: float) -> None:
    """One rectangle per run of black dots, slightly higher than a dot, so that no viewer shows seams."""
    pdf.set_fill_color(0)
    for number, row in enumerate(rows):
        start = None
        for at, black in enumerate([*row, False]):
            if black and start is None:
                start = at
            elif not black and start is not None:
                pdf.rect(left + start * dot, top + number * dot, (at - start) * dot, dot * 1.02, style="F")
                start = None


def _document(data: bytes) -> bytes:
    """Keeps the proof of certification, from the last rule to the code, on one page. Further pages have a header with
    the document's name."""
    document = msgspec.msgpack.decode(data, type=Document)
    pdf = new_pdf(document.language, document.name)
    pdf.header = partial(_header, pdf, document.name)  # type: ignore[method-assign]  # for the pages after the first
    last = max((at for at, each in enumerate(document.elements) if isinstance(each, Rule)), default=0)
    draw(pdf, document.elements[:last])
    if pdf.will_page_break(_height(document.elements[last:])):
        pdf.add_page()
    draw(pdf, document.elements[last:])
    return bytes(pdf.output())


def _header(pdf: FPDF, name: str) -> None:
    _style(pdf, SIZE - 1, bold=False)
    pdf.cell(0, LINE * 2, f"{name}, {pdf.page_no()}", align="R", new_x="LMARGIN", new_y="NEXT")


def _height(elements: Sequence[Element]) -> float:
    """Approximate height of elements with a QR code; 0 if they have no QR code or contain a table."""
    codes = [len(qr_modules(each.content)) + 6.0 for each in elements if isinstance(each, QrCode)]
    is_short = codes and not any(isinstance(each, Table) for each in elements)
    return sum(codes) + LINE * len(elements) if is_short else 0


def _poster(data: bytes) -> bytes:
    (size,) = [each for each in get_args(PaperSize) if each == data.decode()]
    pdf = new_pdf("fr", " ".join(SIGN), size, "L")
    pdf.set_auto_page_break(auto=False)
    pdf.set_line_width(2)
    pdf.rect(MARGIN / 2, MARGIN / 2, pdf.w - MARGIN, pdf.h - MARGIN)
    _style(pdf, 100, bold=True)
    letters = 100 * (pdf.epw - 4) / max(map(pdf.get_string_width, SIGN))
    leading = letters / 2
    _style(pdf, letters, bold=True)
    pdf.set_y((pdf.h - leading * len(SIGN)) / 2)
    for line in SIGN:
        pdf.cell(0, leading, line, align="C", new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def main() -> None:
    warnings.simplefilter("ignore")  # fpdf2's, of functions that it will change
    sys.stdout.buffer.write({"document": _document, "poster": _poster}[sys.argv[1]](sys.stdin.buffer.read()))
