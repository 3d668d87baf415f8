"""HEAD at headquarters, as load balancers and monitors send it."""

from __future__ import annotations

import httpx
import pytest
from support.hq.running import RunningHq


@pytest.fixture
def hq(tmp_path):
    hq = RunningHq(tmp_path / "hq", f"sqlite:///{tmp_path}/hq.sqlite3")
    hq.start()
    yield hq
    hq.stop()


def test_a_head_is_a_get_without_its_body(hq):
    """RFC 9110, 9.3.2: status and headers of the GET; a route without a GET refuses it."""
    headers = {"authorization": f"Bearer {hq.cli('keys', 'create', '--role', 'reader')}"}
    with httpx.Client(base_url=hq.base, headers=headers, trust_env=False) as client:
        for path in ("/health/live", "/health/ready", "/metrics", "/", "/ui/login", "/v1/findings", "/nowhere"):
            get, head = (client.request(method, path) for method in ("GET", "HEAD"))
            assert (head.status_code, head.content) == (get.status_code, b""), path
            assert head.headers["content-length"] == get.headers["content-length"]
        assert client.head("/closures").status_code == 405
