"""After the first start: does the machine answer, and a first invoice that costs nothing."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Final

from daemon.api.http.answers import Reply
from daemon.api.page.shown.machine_shown import machine_view
from daemon.api.page.visit import Visit, name_of, redirect, screen, shown
from daemon.core.errors import NotFound
from daemon.usecases.certification.certify import certify

AMOUNT: Final = 100


@screen("/ui/welcome", "administer")
async def welcome(visit: Visit) -> Reply:
    now = visit.deps.clock()
    workers = visit.deps.workers.all()
    return await shown(
        visit,
        "welcome.html",
        machines=[machine_view(each, visit, now) for each in workers if each.book.mode == "live"],
        test_machine=next((name_of(each) for each in workers if each.book.mode == "test"), ""),
        key=secrets.token_urlsafe(9),
    )


@screen("/ui/box/test-invoice", "administer", change=True)
async def test_invoice(visit: Visit) -> Reply:
    """Through everything that a till's invoice goes through, but to the machine in the box itself; however often the form is sent,
    one invoice."""
    worker = visit.worker
    if worker.book.mode != "test":
        raise NotFound("this is no test machine")
    key = visit.form.get("key", "")[:20] or secrets.token_urlsafe(9)
    call = visit.call(f"page test {key}", _fingerprint(key))
    done = await certify(worker, _body(f"TEST-{key}", visit.say("Test")), call)
    return redirect(visit.link(f"/ui/journal/{done.value.seq}"))


def _body(number: str, article: str) -> dict[str, Any]:
    return {
        "invoiceNumber": number,
        "invoiceType": "FV",
        "items": [{"name": article, "taxGroup": "B", "unitPrice": AMOUNT, "quantity": 1}],
        "payments": [{"method": "E", "amount": AMOUNT}],
    }


def _fingerprint(key: str) -> bytes:
    return hashlib.sha256(f"page test {key}".encode()).digest()[:16]


HANDLERS = (welcome, test_invoice)
