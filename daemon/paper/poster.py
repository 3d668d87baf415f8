"""The sign that hangs at each till (arrêté 2025-0049, art. 6 c), as a PDF of one page in letters as large as the paper takes."""

from __future__ import annotations

from typing import Final, Literal

PaperSize = Literal["A4", "A5"]
SIZES: Final[dict[PaperSize, tuple[int, int]]] = {"A4": (842, 595), "A5": (595, 420)}
"""Landscape, in points."""
LINES: Final = ("EXIGEZ LA", "FACTURE ELECTRONIQUE", "CERTIFIEE")
"""The words of the law, as it writes them."""
WIDTHS: Final = {
    "A": 722, "C": 722, "E": 667, "F": 611, "G": 778, "I": 278, "L": 611, "N": 722, "O": 778, "Q": 778, "R": 722, "T": 611,
    "U": 722, "X": 667, "Z": 611, " ": 278,
}  # fmt: skip
"""Of Helvetica-Bold, which every reader of PDF has, in thousandths of its size."""
MARGIN: Final = 40


def poster(size: PaperSize) -> bytes:
    width, height = SIZES[size]
    longest = max(map(_thousandths, LINES))
    letters = (width - 2 * MARGIN) * 1000 // longest
    leading = letters * 3 // 2
    top = (height + leading * (len(LINES) - 1)) // 2 - letters * 36 // 100
    shown = [
        f"1 0 0 1 {(width - _thousandths(line) * letters // 1000) // 2} {top - leading * row} Tm ({line}) Tj"
        for row, line in enumerate(LINES)
    ]
    frame = f"6 w {MARGIN // 2} {MARGIN // 2} {width - MARGIN} {height - MARGIN} re S"
    text = "\n".join((frame, "BT", f"/F {letters} Tf", *shown, "ET"))
    return _pdf(
        "<< /Type /Catalog /Pages 2 0 R /Lang (fr) >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
        f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
    )


def _thousandths(line: str) -> int:
    return sum(WIDTHS[char] for char in line)


def _pdf(*objects: str) -> bytes:
    """The objects, numbered from 1, and the table of where they are."""
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode("ascii")
    start, count = len(out), len(objects) + 1
    out += f"xref\n0 {count}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    return bytes(out + f"trailer << /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
