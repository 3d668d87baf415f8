"""PostgreSQL is killed under two running instances and comes back: it is said to be away, and nothing that was taken is lost."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from support.hq.paper_box import PaperBox
from support.hq.postgresql import DEBIAN, Cluster, binaries
from support.hq.running import RunningHq

pytestmark = pytest.mark.long


@pytest.fixture
def two(tmp_path):
    if binaries() is None:
        pytest.skip(f"needs Debian's package {DEBIAN}")
    cluster = Cluster()
    cluster.start()
    url = cluster.database()
    instances = [RunningHq(tmp_path / name, url) for name in ("first", "second")]
    for hq in instances:
        hq.start()
    yield cluster, instances
    for hq in instances:
        hq.kill()
    cluster.remove()


def statuses(hq, sent) -> list[int]:
    """Of a closure, of the login of a stranger, and of the question whether it is ready."""
    login = httpx.post(f"{hq.base}/ui/login", data={"name": "Awa", "password": "x"}, timeout=40, trust_env=False)
    ready = httpx.get(f"{hq.base}/health/ready", timeout=40, trust_env=False)
    return [hq.post("/closures", sent).status_code, login.status_code, ready.status_code]


def test_away_and_back(two):
    cluster, instances = two
    box = PaperBox()
    instances[0].cli("boxes", "add", box.nim, "--public-key", box.key.public)
    key = instances[0].key("reader")
    closures = [box.close() for _ in range(3)]
    assert statuses(instances[0], box.sent(closures[0])) == [200, 401, 200]
    cluster.kill()
    began = time.monotonic()
    for hq in instances:
        assert statuses(hq, box.sent(closures[1])) == [503, 503, 503]
    assert time.monotonic() - began < 30
    cluster.start()
    for hq, closure in zip(instances, closures[1:], strict=True):
        deadline = time.monotonic() + 30
        while statuses(hq, box.sent(closure))[1:] != [401, 200]:
            assert time.monotonic() < deadline
        assert hq.post("/closures", box.sent(closure)).status_code == 409
        assert hq.get("/v1/closures", key).status_code == 200
    rows = instances[1].get("/v1/closures", key).json()["closures"]
    assert [row["z_number"] for row in rows] == [1, 2, 3]


def test_it_answers_nothing(two):
    """Stopped with its connections open: each request is answered all the same, and each closure is there once."""
    cluster, (hq, _) = two
    box = PaperBox()
    hq.cli("boxes", "add", box.nim, "--public-key", box.key.public)
    key = hq.key("reader")
    closures = [box.close() for _ in range(100)]

    def sent(closure):
        headers, body = box.sent(closure)
        return httpx.post(
            f"{hq.base}/closures", headers=headers, content=body, timeout=100, trust_env=False
        ).status_code

    def read(path):
        headers = {"authorization": f"Bearer {key}"}
        return httpx.get(f"{hq.base}{path}", headers=headers, timeout=100, trust_env=False).status_code

    def sent_at_last(closure):
        while (status := sent(closure)) == 503:
            pass
        return status

    with ThreadPoolExecutor(40) as threads:
        assert [sent(closure) for closure in closures[:10]] == [200] * 10
        before = [threads.submit(sent, closure) for closure in closures[10:90]]
        before[20].result()
        cluster.signal_all(signal.SIGSTOP)
        try:
            since = [threads.submit(sent, closure) for closure in closures[90:]]
            reading = [threads.submit(read, path) for path in ("/v1/closures", "/health/ready", "/v1/findings")]
            assert {one.result() for one in (*since, *reading)} == {503}
            assert {one.result() for one in before} <= {200, 503}
        finally:
            cluster.signal_all(signal.SIGCONT)
    assert {sent_at_last(closure) for closure in closures} <= {200, 409}
    rows = hq.get("/v1/closures", key).json()["closures"]
    assert [row["z_number"] for row in rows] == list(range(1, 101))


def test_killed_while_closures_arrive(two):
    """Twice, with closures of six boxes under way at both instances: each box hears 200 or 409 of each closure in the end, and each is there once."""
    cluster, instances = two
    boxes = [PaperBox(f"EL0200002{number}-1") for number in range(6)]
    for box in boxes:
        instances[0].cli("boxes", "add", box.nim, "--public-key", box.key.public)
    key = instances[0].key("reader")
    ends: list[float] = []

    def sending(box: PaperBox) -> set[int]:
        statuses = set()
        while not ends or time.monotonic() < ends[-1]:
            closure = box.close()
            while (status := instances[len(box.closures) % 2].post("/closures", box.sent(closure)).status_code) == 503:
                statuses.add(status)
            assert status in (200, 409)
        return statuses

    with ThreadPoolExecutor(len(boxes)) as threads:
        running = [threads.submit(sending, box) for box in boxes]
        for _ in range(2):
            time.sleep(1)
            cluster.kill()
            cluster.start()
        ends.append(time.monotonic() + 0.5)
        assert set().union(*(one.result() for one in running)) == {503}
    for box in boxes:
        rows = instances[1].get(f"/v1/closures?nim={box.nim}", key).json()["closures"]
        assert [row["z_number"] for row in rows] == [closure.z_number for closure in box.closures]
    assert instances[1].get("/v1/findings", key).json() == {"findings": []}
