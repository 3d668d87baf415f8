"""Renders a document as one self-contained HTML page, for a browser's print dialogue, an e-mail or an archive."""

from base64 import b64encode
from html import escape

from daemon.paper import layout
from daemon.paper.layout import NARROWEST, Document, Element, Logo, Pair, QrCode, Rule, Table, TextLine, Title
from daemon.paper.logo import draw_qr

PAPER_MM = {32: 58, 42: 80, 48: 80}
"""Width of the paper roll in mm, by number of columns."""
CODE_LENGTH = 24
"""Text without spaces and of at least this length is a code or a number; it is not broken into lines."""

_STYLE = """
@page { size: %(paper)dmm auto; margin: 0 }
body { width: %(inner)dmm; margin: 0 auto; padding: 3mm 0; color: #000; background: #fff;
  font: %(font)smm/1.35 "DejaVu Sans", Arial, sans-serif; font-variant-numeric: tabular-nums }
h1 { font-size: 1.35em; text-align: center; margin: .6em 0 }
p { margin: 0; min-height: 1.35em; overflow-wrap: anywhere }
.center { text-align: center; text-wrap: balance }
.bold { font-weight: bold }
.code { white-space: nowrap; font-size: .82em }
.pair { display: flex; justify-content: space-between; flex-wrap: wrap; column-gap: 1em }
.pair > :last-child { margin-left: auto; text-align: right; overflow-wrap: anywhere }
table { width: 100%%; border-collapse: collapse; font-size: .85em }
th, td { text-align: right; padding: 0 0 0 1mm } th:first-child, td:first-child { text-align: left; padding: 0 }
hr { border: 0; border-top: 1px dashed #000; margin: .6em 0 }
svg { display: block; margin: 2mm auto }
.logo { display: block; margin: 0 auto 2mm; max-width: %(logo)dmm; max-height: 30mm }
@media screen and (max-width: 30rem) { body { width: %(phone)dvw; font-size: %(letters).2fvw } }
"""
PHONE_PERCENT = 92
"""Width on a phone, of the screen; letters grow with it, so that lines break as on paper."""


def as_html(document: Document, width: int) -> str:
    """The page has the size of paper with `width` columns."""
    paper = PAPER_MM[width]
    inner, font = paper - 8, 2.6 if paper < PAPER_MM[48] else 3
    style = _STYLE % {
        "paper": paper,
        "inner": inner,
        "logo": inner * 2 // 3,
        "font": font,
        "phone": PHONE_PERCENT,
        "letters": PHONE_PERCENT * font / inner,
    }
    body = "\n".join(_html(element, width) for element in document.elements)
    return (
        f'<!doctype html>\n<html lang="{document.language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(document.name)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(element: Element, width: int) -> str:
    match element:
        case Title(text):
            return f"<h1>{escape(text)}</h1>"
        case TextLine(text, align, bold, indent):
            classes = _classes(center=align == "center", bold=bold, code=len(text) >= CODE_LENGTH and " " not in text)
            return f"<p{classes}{_indent(indent)}>{escape(text)}</p>"
        case Pair(left, right, bold, indent):
            spans = f"<span>{escape(left)}</span><span>{escape(right)}</span>"
            return f"<p{_classes(pair=True, bold=bold)}{_indent(indent)}>{spans}</p>"
        case Table():
            return _table(element, width)
        case Rule():
            return "<hr>"
        case QrCode() | Logo():
            return _picture(element)


def _table(table: Table, width: int) -> str:
    """A table if its figures fit beside a name, otherwise one pair per cell. Names may wrap, figures do not."""
    if NARROWEST + sum(size + 1 for size in layout.sizes_of(table)[1:]) > width:
        return "\n".join(_html(each, width) for each in layout.stacked(table))
    figures = "".join(f"<tr>{_cells('td', row)}</tr>" for row in table.rows)
    return f"<table><tr>{_cells('th', table.head)}</tr>{figures}</table>"


def _picture(element: QrCode | Logo) -> str:
    if isinstance(element, QrCode):
        return draw_qr(element.content).decode().strip()
    return f'<img class="logo" alt="" src="data:image/png;base64,{b64encode(element.png).decode()}">'


def _classes(**wanted: bool) -> str:
    names = " ".join(name for name, on in wanted.items() if on)
    return f' class="{names}"' if names else ""


def _indent(columns: int) -> str:
    return f' style="padding-left: {columns}ch"' if columns else ""


def _cells(kind: str, cells: tuple[str, ...]) -> str:
    return "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells)
