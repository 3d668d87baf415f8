"""The QR code of a receipt, ready for the ticket."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from litestar import get

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer, Header
from daemon.core.report.receipt import receipt
from daemon.paper.qr import draw_qr
from daemon.usecases.reports import journal

UNCHANGING: Final[Header] = (b"cache-control", b"private, max-age=31536000, immutable")
_TEXT = "The QR code of the receipt (`qrContent`), 34 mm wide, for an 80 mm ticket."


@get(
    "/certifications/{code:str}/qr.svg",
    **described(
        "get_qr_svg",
        tag="journal",
        right="look",
        summary="QR code as SVG",
        description=f"{_TEXT} Measured in millimetres.",
        media=("image/svg+xml",),
    ),
)
async def qr_svg(request: ApiRequest) -> Answer:
    return await _answer(request, "svg", b"image/svg+xml")


@get(
    "/certifications/{code:str}/qr.png",
    **described(
        "get_qr_png",
        tag="journal",
        right="look",
        summary="QR code as PNG",
        description=f"{_TEXT} 270 dots, 203 dpi: 6 printer dots a module.",
        media=("image/png",),
    ),
)
async def qr_png(request: ApiRequest) -> Answer:
    return await _answer(request, "png", b"image/png")


async def _answer(request: ApiRequest, kind: Literal["svg", "png"], media_type: bytes) -> Answer:
    worker = request.auth.worker
    record = await journal.find(worker, request.path_params["code"])
    content = receipt(record).qr_content
    image = await asyncio.to_thread(draw_qr, content, kind)
    return Answer(image, media_type=media_type, headers=(UNCHANGING,))


HANDLERS = (qr_svg, qr_png)
