"""The load and the disk of the bench: answers are whole, counts are exact, what is added to an fsync is added to each."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path

import pytest
from support.slow_disk import read_count

from bench import ROOT
from bench.shop.till import Crowd, Endpoint, Till, TillRefused, answer_of

SCRIPT = """
import sqlite3, sys, time
from pathlib import Path
from support.slow_disk import CountingDisk, read_count
count_file = Path(sys.argv[1])
disk = CountingDisk(count_file, float(sys.argv[3]))
disk.install()
connection = sqlite3.connect(sys.argv[2], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL").fetchall()
connection.execute("PRAGMA synchronous = FULL")
connection.execute("CREATE TABLE entry (x)")
before, began = read_count(count_file), time.monotonic()
for _ in range(10):
    connection.execute("INSERT INTO entry VALUES (1)")
print(read_count(count_file) - before, time.monotonic() - began)
connection.close()
"""


@pytest.mark.parametrize("delay", [0.0, 0.02])
def test_every_fsync_is_counted_and_takes_longer(tmp_path: Path, delay: float):
    """Ten commits in WAL and FULL are ten fsyncs, each with what was added to it."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "count"), str(tmp_path / "x.sqlite3"), str(delay)]
    done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True, check=True)
    counted, took = done.stdout.split()
    assert int(counted) == 10
    assert float(took) >= 10 * delay
    assert read_count(tmp_path / "count") >= 10


def test_an_answer_is_whole_or_not_there():
    """However it is cut, an answer counts with its last byte; a refusal is none."""
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nx: y\r\n\r\n{}"
    assert [answer_of(whole[:end]) for end in range(len(whole))] == [None] * len(whole)
    assert answer_of(whole) == b"{}"
    with pytest.raises(TillRefused, match=r"503.*machine"):
        answer_of(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 7\r\n\r\nmachine")


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, bytes]]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Authorization"], body))
        time.sleep(0.002)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    Echo.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield Endpoint(server.server_address[1], "/certify", "key")
    server.shutdown()
    serving.join()
    server.server_close()


def test_one_till_waits_for_each_answer(endpoint: Endpoint):
    """One after the other on one connection, and the time is the request's."""
    till = Till(endpoint)
    times = [till.post(b'{"n":%d}' % turn) for turn in range(5)]
    till.close()
    assert [body for _, body in Echo.seen] == [b'{"n":%d}' % turn for turn in range(5)]
    assert {key for key, _ in Echo.seen} == {"Bearer key"}
    assert min(times) >= 0.002


def test_a_crowd_counts_what_was_answered_and_leaves_nothing_open(endpoint: Endpoint):
    """Forty answers are enough; those under way are waited for and do not count."""
    crowd = Crowd()
    for name in ("a", "b", "c", "d"):
        crowd.join(endpoint, repeat(b"{}"), name)
    crowd.run_until(40)
    crowd.close()
    assert len(crowd.done) == 40
    assert len(Echo.seen) == 43
    assert {name for _, name in crowd.done} == {"a", "b", "c", "d"}
