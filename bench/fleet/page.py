"""The page's first view when ten thousand shops have years behind them."""

from __future__ import annotations

import statistics
import time

import httpx
import psycopg

from bench.fleet.site import FleetSite

SHOPS = 10_000
VIEWS = 15
PASSWORD = "a long password"  # noqa: S105  # of a bench
FILL = """
INSERT INTO closure (machine, id, nim, mode, ledger_id, epoch, z, day, period_start, period_end, created_at, received_at, certs,
                     ttc, ht, tva, groups, payments, held, key_id, via)
SELECT 'PG' || lpad(shop::text, 8, '0'), shop || '-' || z, 'PG' || lpad(shop::text, 8, '0') || '-1', 'live', '', 0, z,
       (current_date - (%(days)s - z))::text, 0, 0, (extract(epoch FROM current_date - (%(days)s - z)) * 1000)::bigint, 0, 40,
       320000, 271186, 48814, '\\x90', '\\x90', '\\xc0', 'bench', 'nats'
FROM generate_series(1, %(days)s) AS z, generate_series(1, %(shops)s) AS shop
"""
BOXES = """
INSERT INTO box (machine, nim, label, region, usual_days, added_at)
SELECT 'PG' || lpad(n::text, 8, '0'), 'PG' || lpad(n::text, 8, '0') || '-1', 'Shop ' || n, 'R' || n %% 13, 0, 1
FROM generate_series(1, %(shops)s) AS n
"""


def first_view(site: FleetSite, rows: int) -> float:
    """Median milliseconds of `/ui/`, logged in, as PostgreSQL has it in memory."""
    with psycopg.connect(site.url, autocommit=True) as connection:
        connection.execute(FILL, {"days": max(1, rows // SHOPS), "shops": SHOPS})
        connection.execute(BOXES, {"shops": SHOPS})
        connection.execute("VACUUM ANALYZE")
    hq = site.instances[0]
    hq.cli("users", "create", "bench", "--role", "reader", "--password-stdin", stdin=PASSWORD + "\n")
    with httpx.Client(base_url=hq.base, timeout=60, trust_env=False) as client:
        client.post("/ui/login", data={"name": "bench", "password": PASSWORD})
        times = []
        for _ in range(VIEWS):
            began = time.perf_counter()
            client.get("/ui/").raise_for_status()
            times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)
