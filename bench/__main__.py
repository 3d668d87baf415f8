"""`python -m bench [--only line-1,memory]`: all rows of the table, in six minutes on two cores."""

import argparse
import logging
from collections.abc import Callable, Iterable

import structlog

from bench import keep_byte_code
from bench.figures import LIMITS, Row, significant, table
from bench.rows import network, sales

PARTS: dict[str, Callable[[], Iterable[Row]]] = {
    "sale line-1 line-10 line-100 processor": sales.beside_the_line,
    "tls-sale tls-1 tls-10 tls-100": sales.through_haproxy,
    "slow-disk": sales.slow_disk,
    "machines": sales.machines,
    "upstream": sales.upstream,
    "syncs": sales.syncs,
    "memory memory-pair": sales.memory,
    "start reports memory-large today first-load search command": sales.large_ledger,
    "relay relay-rate relay-idle": network.relay,
    "waiting start-waiting": sales.waiting,
    "hq": network.intake,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the service costs beside the line.")
    parser.add_argument("--only", default="", metavar="ROWS", help=f"some of: {', '.join(LIMITS)}")
    options = parser.parse_args()
    wanted = set(options.only.split(",")) if options.only else set(LIMITS)
    if unknown := wanted - set(LIMITS):
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}")
    keep_byte_code()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows: list[Row] = []
    for names, part in PARTS.items():
        if wanted & set(names.split()):
            for row in part():
                value = "–" if row.value is None else significant(row.value)
                print(f"  {row.row:13} {row.verdict:12} {value:>8}  {LIMITS[row.row].what}", flush=True)
                rows.append(row)
    rows.sort(key=lambda row: list(LIMITS).index(row.row))
    print("\n" + table(rows))
    missed = sum(row.verdict == "MISS" for row in rows)
    reached = sum(row.verdict == "pass" for row in rows)
    print(f"\n{reached} of {reached + missed} limits reached; every ledger verified")


if __name__ == "__main__":
    main()
