"""Headquarters' pages and `/v1` without a socket: the application itself, asked by a client in the same process."""

import contextlib
import time
import warnings

import httpx
from litestar.exceptions import LitestarDeprecationWarning
from support.hq.store import UTC

from common.login_guard import LoginGuard
from headquarters.app.service import create_service
from headquarters.intake.reception import Reception
from headquarters.intake.threads import Threads
from headquarters.page.shared import RULES, Screens

BASE = "http://hq.example"


@contextlib.asynccontextmanager
async def pages(store, zone=UTC, *, is_secure=False, role=""):
    """A client without a session, or with one and a key of `/v1` in that role, as by `log_in`. Budgets of logins stand still."""
    threads = Threads()
    screens = Screens(store, threads, LoginGuard(RULES, lambda: 0.0), zone, "fr", is_secure=is_secure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LitestarDeprecationWarning)  # of how 2.x names what a handler is given
        service = create_service(store, threads, Reception(store, threads, zone), screens)
    transport = httpx.ASGITransport(service)
    try:
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            if role:
                log_in(client, store, role)
            yield client
    finally:
        threads.close()


def log_in(client, store, role="accountant"):
    store.people.create(f"a {role}", "no password", role, 1)
    client.cookies.set("hq_session", store.people.begin(f"a {role}", time.time_ns() // 1_000_000))
    client.headers["authorization"] = f"Bearer {store.people.create_key(role, '', 1)}"
