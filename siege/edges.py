"""`python -m siege.edges`: the same attacks on each edge that was considered: ours, uvicorn alone, Granian, HAProxy before ours.

HAProxy and Granian are asked for by name and left out where they are not installed (docs/architecture.md, "The edge").
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from support.ports import free_port

from siege import RESULTS
from siege.__main__ import Times, attacked
from siege.fortress import Fortress, put_first, standing
from siege.table import Row, markdown, shown
from siege.till import Till

EDGES = ("ours", "uvicorn", "granian", "haproxy")
ATTACKS = "blank-lines-80,header-bombs,pipelining,half-handshakes,idle,slow-headers,slow-readers,reconnects,wrong-keys"
# What a careful hand writes for one box: a limit for each address, and a deadline for each phase.
HAPROXY = """\
global
    maxconn 800
defaults
    mode http
    timeout connect 5s
    timeout client 75s
    timeout server 120s
    timeout http-request 10s
    timeout http-keep-alive 75s
frontend edge
    bind 127.0.0.1:{port}
    stick-table type ip size 100k expire 60s store conn_cur,conn_rate(10s),http_req_rate(10s)
    tcp-request connection track-sc0 src
    tcp-request connection reject if {{ sc0_conn_cur gt 64 }}
    tcp-request connection reject if {{ sc0_conn_rate gt 300 }}
    http-request deny deny_status 429 if {{ sc0_http_req_rate gt 500 }}
    default_backend box
backend box
    server mcfd 127.0.0.1:{behind}
"""


@contextlib.contextmanager
def behind(edge: str) -> Iterator[Fortress]:
    kind = "ours" if edge == "haproxy" else edge
    command = (sys.executable, "-m", "siege.edge_daemon", kind)
    with standing(tls=False, command=command) as fortress:
        if edge != "haproxy":
            yield fortress
            return
        port = free_port()
        config = Path(fortress.shop.folder) / "haproxy.cfg"
        config.write_text(HAPROXY.format(port=port, behind=fortress.shop.port))
        proxy = subprocess.Popen(["haproxy", "-q", "-db", "-f", config])  # noqa: S607  where Debian has it
        try:
            time.sleep(1)
            target = replace(fortress.target, port=port)
            yield replace(fortress, target=target, till=Till(target, fortress.shop.key("live")))
        finally:
            proxy.kill()
            proxy.wait()


def missing(edge: str) -> bool:
    if edge == "granian":
        return importlib.util.find_spec("granian") is None
    return edge == "haproxy" and shutil.which("haproxy") is None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m siege.edges", description="The edges that were considered.")
    parser.add_argument("--only", default=",".join(EDGES), metavar="EDGES")
    parser.add_argument("--attacks", default=ATTACKS, metavar="NAMES")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each attack")
    parser.add_argument(
        "--first", action="store_true", help="till, daemon and simulator before other work of a busy box"
    )
    options = parser.parse_args()
    rows: list[Row] = []
    for edge in options.only.split(","):
        if missing(edge):
            print(f"{edge}: not installed, left out")
            continue
        print(f"\n{edge}", flush=True)
        try:
            with behind(edge) as fortress:
                if options.first:
                    put_first(fortress)
                for row in attacked(fortress, options.attacks.split(","), Times(options.seconds, options.seconds)):
                    print(shown(row), flush=True)
                    rows.append(row)
        except (
            OSError,
            AssertionError,
            subprocess.SubprocessError,
        ) as error:  # an edge that does not survive is a result, too
            print(f"  {edge} did not come through: {error!r}"[:300], flush=True)
    (RESULTS / "edges.md").write_text(markdown(rows) + "\n")


if __name__ == "__main__":
    main()
