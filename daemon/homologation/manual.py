"""Pages of the documentation (Markdown) on paper, by markdown-it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from daemon.paper.pdf import LINE, MARGIN, SIZE

if TYPE_CHECKING:
    from fpdf import FPDF
    from markdown_it.token import Token

HEADINGS: Final = {"h1": 15, "h2": 12, "h3": 10}
"""Points."""


def write_pages(pdf: FPDF, folder: Path, names: Sequence[str]) -> None:
    """Each page begins on a sheet of its own, but for the first. Text, lists, code and tables; a picture where Pillow can read it."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  for this command alone

    for number, name in enumerate(names):
        if number:
            pdf.add_page()
        tokens = iter(MarkdownIt("commonmark").enable("table").parse(_read(folder / name)))
        for token in tokens:
            _block(pdf, token, tokens, folder)


def _read(file: Path) -> str:
    """Debhelper compresses long pages."""
    if file.is_file():
        return file.read_text(encoding="utf-8")
    return gzip.decompress(file.with_name(f"{file.name}.gz").read_bytes()).decode()


def _block(pdf: FPDF, token: Token, tokens: Iterator[Token], folder: Path) -> None:
    indent = MARGIN + max(0, token.level - 1) * 2
    match token.type:
        case "heading_open":
            size = HEADINGS.get(token.tag, SIZE)
            pdf.ln(3)
            _text(pdf, _plain(next(tokens)), MARGIN, size=size, bold=True)
            pdf.ln(1)
        case "inline":
            mark = "• " if token.level > 1 else ""
            _text(pdf, mark + _plain(token), indent)
            _pictures(pdf, token, folder)
            pdf.ln(1.5)
        case "fence" | "code_block":
            pdf.set_font("DejaVuMono", size=SIZE - 1.5)
            pdf.set_fill_color(240)
            pdf.set_x(MARGIN)
            pdf.multi_cell(0, LINE, token.content.rstrip("\n"), align="L", fill=True, new_x="LMARGIN", new_y="NEXT")
            pdf.ln(2)
        case "table_open":
            _table(pdf, tokens)
        case _:
            pass


def _table(pdf: FPDF, tokens: Iterator[Token]) -> None:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_plain(token))
    pdf.set_font("DejaVu", size=SIZE - 1)
    has_head = any(rows[0])
    with pdf.table(line_height=LINE, text_align="LEFT", padding=0.6, first_row_as_headings=has_head) as table:
        for row in rows if has_head else rows[1:]:
            table.row(row)
    pdf.ln(2)


def _text(pdf: FPDF, text: str, left: float, *, size: float = SIZE, bold: bool = False) -> None:
    pdf.set_font("DejaVu", "B" if bold else "", size)
    pdf.set_x(left)
    pdf.multi_cell(0, size / 2, text or " ", align="L", new_x="LMARGIN", new_y="NEXT")


def _plain(inline: Token) -> str:
    return "".join(
        " " if child.type == "softbreak" else child.content for child in inline.children or () if child.type != "image"
    )


def _pictures(pdf: FPDF, inline: Token, folder: Path) -> None:
    for child in inline.children or ():
        file = folder / str(child.attrs.get("src", ""))
        if child.type == "image" and file.is_file():
            try:
                pdf.image(file, w=pdf.epw * 2 / 3)
            except (ImportError, OSError):  # no Pillow on a box
                return
