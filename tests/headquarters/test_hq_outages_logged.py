"""Each outage of NATS is one line of the log: not one for each try, and not one for all outages of a month."""

import asyncio

import pytest
from structlog.testing import capture_logs

from common.wire import nats_pull
from common.wire.errors import NatsError


class _Client:
    async def close(self):
        pass


async def _connected():
    return _Client()


@pytest.mark.parametrize(("well_after", "lines"), [(3600.0, 1), (0.0, 3)])
async def test_outages(monkeypatch, well_after, lines):
    """The same words three times: of sessions that end at once, and of sessions that went well in between."""
    monkeypatch.setattr(nats_pull, "AGAIN_SECONDS", 0)
    monkeypatch.setattr(nats_pull, "NEW_TROUBLE_SECONDS", well_after)
    left = [NatsError("the connection is lost")] * 3

    async def session(_):
        if not left:
            raise asyncio.CancelledError
        raise left.pop()

    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await nats_pull.sessions("stream", _connected, session)
    assert [line["event"] for line in logs] == ["nats.lost"] * lines
