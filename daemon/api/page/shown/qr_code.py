"""QR codes in the page."""

from __future__ import annotations

import asyncio
import base64

from daemon.paper.qr import draw_qr


async def qr_picture(text: str) -> str:
    """A `data:` address for an image; drawn in a thread, so that no till waits."""
    return f"data:image/svg+xml;base64,{base64.b64encode(await asyncio.to_thread(draw_qr, text)).decode()}"
