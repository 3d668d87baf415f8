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
