"""QR codes as pictures, sized for a receipt printer."""

from __future__ import annotations

import io
from typing import Final, Literal

DOTS_PER_MM: Final = 8
"""Of a thermal printer (203 dpi); an 80 mm roll is printed 72 mm wide."""
DOTS_PER_MODULE: Final = 6
"""So a module is 0.75 mm, and the 37 modules of a receipt with their margin are 34 mm wide: read from a worn ticket too."""
MODULE_MM: Final = DOTS_PER_MODULE / DOTS_PER_MM
QUIET_ZONE: Final = 4
DPI: Final = 203


def draw_qr(content: str, kind: Literal["svg", "png"] = "svg") -> bytes:
    """Some milliseconds of work: in a thread, where a till may wait."""
    import segno  # noqa: PLC0415  half a megabyte that most boxes never need

    code = segno.make_qr(content, error="m")
    image = io.BytesIO()
    if kind == "svg":
        code.save(image, kind=kind, scale=MODULE_MM, unit="mm", border=QUIET_ZONE, light="white", xmldecl=False)
    else:
        code.save(image, kind=kind, scale=DOTS_PER_MODULE, dpi=DPI, border=QUIET_ZONE)
    return image.getvalue()


_HALVES: Final = {(0, 0): " ", (1, 0): "\N{UPPER HALF BLOCK}", (0, 1): "\N{LOWER HALF BLOCK}", (1, 1): "\N{FULL BLOCK}"}


def qr_blocks(content: str, width: int) -> list[str]:
    """In characters, a module wide and two high, centred; nothing where the code and a margin of two modules are wider than that."""
    import segno  # noqa: PLC0415  as above

    code = segno.make_qr(content, error="m")
    border = min(QUIET_ZONE, (width - len(code.matrix)) // 2)
    if border < QUIET_ZONE // 2:
        return []
    rows = [list(row) for row in code.matrix_iter(border=border)]
    rows += [[0] * len(rows)] * (len(rows) % 2)
    lines = (
        "".join(map(_HALVES.__getitem__, zip(*pair, strict=True))) for pair in zip(rows[::2], rows[1::2], strict=True)
    )
    return [line.center(width).rstrip() for line in lines]
