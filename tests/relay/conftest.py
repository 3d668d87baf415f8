"""Relays, boxes and a nats-server, as processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from support.relay_site import RelaySite, running
from support.shop import PLAIN


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[RelaySite]:
    async with running(tmp_path) as created:
        yield created


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(verify=PLAIN, timeout=120) as client:
        yield client
