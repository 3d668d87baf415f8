"""The card of a till: address, machine and key as a QR code, the box's authority and the page; on the screen once, and as a PDF from there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from daemon.api.http.answers import Reply
from daemon.api.page.downloads import PATH, address_here, authority_link
from daemon.api.page.screens.paper import pdf_answer
from daemon.api.page.shown.line_charts import qr_picture
from daemon.api.page.visit import Visit, screen
from daemon.core.errors import NotFound
from daemon.paper.elements import Document, Element, Pair, QrCode, Rule, TextLine


def for_till(visit: Visit, key: str) -> str:
    """What a till scans, as JSON: where the box is, which machine, and its key."""
    told = {"url": address_here(visit), "nim": visit.worker.book.nim, "key": key}
    return msgspec.json.encode(told).decode()


async def on_screen(visit: Visit, key: str) -> dict[str, Any]:
    """For new_key.html."""
    address = address_here(visit)
    pages = f"{address}/ui/"
    return {
        "key": key,
        "address": address,
        "picture": await qr_picture(for_till(visit, key)),
        "pages": (pages, await qr_picture(pages)),
        "authority": await authority_link(visit),
    }


@screen("/ui/box/key/card", "administer", change=True)
async def card(visit: Visit) -> Reply:
    """The same on paper. The box keeps no key, so the form brings it; one that is not of this machine is no card."""
    key = visit.form.get("key", "")
    owner = visit.deps.keyring.find(key)
    if owner is None or owner.nim != visit.worker.book.nim:
        raise NotFound("this is no key of the machine")
    elements = tuple(_elements(visit, key, owner.label))
    return await pdf_answer(visit.deps, visit.holder, Document(owner.label, visit.language, elements))


def _elements(visit: Visit, key: str, label: str) -> Iterator[Element]:
    say, address = visit.say, address_here(visit)
    yield TextLine(say("1. The till “{label}”", label=label), align="center", bold=True)
    yield QrCode(for_till(visit, key))
    yield Pair(say("Address"), address)
    yield Pair(say("Machine"), visit.worker.book.nim)
    yield Pair(say("Key"), key)
    if visit.page.authority():
        yield Rule()
        yield TextLine(say("2. The box's authority, for tills to trust"), align="center", bold=True)
        yield QrCode(address + PATH)
        yield TextLine(address + PATH, align="center")
    yield Rule()
    yield TextLine(say("The shop's page"), align="center", bold=True)
    yield QrCode(f"{address}/ui/")
    yield TextLine(f"{address}/ui/", align="center")


HANDLERS = (card,)
