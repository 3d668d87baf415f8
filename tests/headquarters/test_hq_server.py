"""Headquarters' application, in this process."""

import asyncio
from types import SimpleNamespace

from structlog.testing import capture_logs
from support.receivers.authority import Authority
from support.receivers.headquarters import until

from common.front import check_pair
from common.turns import ended
from headquarters.app import serve
from headquarters.app.settings import HqServer, HqSettings


async def test_a_certificate_that_is_renewed(tmp_path, monkeypatch):
    """It is served within a minute. What it cannot be read for is logged when it begins, also when it was right meanwhile."""
    monkeypatch.setattr(serve, "CERTIFICATE_SECONDS", 0.01)
    pair, served = Authority(tmp_path).issue(), asyncio.Queue()
    good, settings = pair.read_bytes(), HqSettings(server=HqServer(tls_cert=pair, tls_key=pair))
    with capture_logs() as lines:
        keeping = asyncio.create_task(serve._reload_certificate(SimpleNamespace(renew=served.put), settings))
        for count in (1, 2):
            pair.write_bytes(b"")
            await until(lambda count=count: len(lines) == count, 10)
            while not served.empty():
                served.get_nowait()
            pair.write_bytes(good)
            assert await asyncio.wait_for(served.get(), 10) == check_pair(pair, pair)
        await ended(keeping)
    assert {line["event"] for line in lines} == {"certificate.not_renewed"}
