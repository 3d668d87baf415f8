"""QR codes in the page."""

from __future__ import annotations

import asyncio
import base64
import io


async def qr_picture(text: str) -> str:
    """A `data:` address for an image; drawn in a thread, so that no till waits."""
    return f"data:image/svg+xml;base64,{base64.b64encode(await asyncio.to_thread(_draw, text)).decode()}"


def _draw(text: str) -> bytes:
    import segno  # noqa: PLC0415  half a megabyte that most boxes never need

    image = io.BytesIO()
    segno.make(text, error="m", micro=False).save(image, kind="svg", scale=5, border=4, light="white", xmldecl=False)
    return image.getvalue()
