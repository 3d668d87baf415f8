"""The certificate that tills have to trust: for whoever stands in the shop's network, since it is no secret."""

from __future__ import annotations

from typing import Final

from litestar import get

from daemon.api.http.answers import Answer, Reply
from daemon.api.page.deps import PageDeps
from daemon.api.page.shown.qr_code import qr_picture
from daemon.api.page.visit import AnyRequest, Visit, fault_page
from daemon.core.errors import NotFound

PATH: Final = "/ui/authority.pem"


def address_here(visit: Visit) -> str:
    """How this browser reaches the box, as a till in the same network will."""
    headers = visit.request.scope["headers"]
    host = next((value.decode("latin-1") for name, value in headers if name == b"host"), "localhost")
    return f"{'https' if visit.page.tls else 'http'}://{host}"


async def authority_shown(visit: Visit) -> tuple[str, str] | None:
    """Its address and that as a QR code; None where this box has no authority of its own."""
    if not visit.page.authority():
        return None
    address = address_here(visit) + PATH
    return address, await qr_picture(address)


@get(PATH)
async def authority(request: AnyRequest) -> Reply:
    """Without a login: a phone that scans its address has none, and it is shown in every TLS handshake anyway."""
    page: PageDeps = request.app.state["page"]
    if not (pem := page.authority()):
        return await fault_page(request, NotFound("this box shows no certificate of its own"))
    headers = ((b"content-disposition", b'attachment; filename="mcfd-authority.pem"'),)
    return Answer(pem, media_type=b"application/x-pem-file", headers=headers)


HANDLERS = (authority,)
