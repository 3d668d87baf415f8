"""`make simulate EVERY=1`: every history, with so many events more than within the suite, and what cannot be decided."""

import argparse
import multiprocessing
import os
import sys
import time
from functools import partial

from exhaustive.pieces import PIECES
from exhaustive.search import Found, Piece, search
from exhaustive.undecidable import described, needless, together

MAX_LINES = 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="make simulate EVERY=1")
    parser.add_argument("--more", type=int, default=0, help="events than within the suite")
    parser.add_argument("--piece", default="", help="only those whose name has this in it")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    pieces = [piece for piece in PIECES if options.piece in piece.name]
    began, all_found = time.monotonic(), []
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for piece, found in zip(pieces, pool.imap(partial(explored, more=options.more), pieces), strict=True):
            say(f"{piece.name}: {piece.bound + options.more} events, {found.worlds} worlds, {len(found.faults)} faults")
            for fault in found.faults[:MAX_LINES]:
                say(f"  {fault}")
            all_found.append(found)
    every = together(all_found)
    pairs = list(zip(pieces, all_found, strict=True))
    needless_lines = [line for piece, found in pairs for line in needless(found, every, piece.bound + options.more - 2)]
    needless_lines = (
        [] if options.piece else needless_lines
    )  # a piece alone does not know of the truths that others show
    say("cannot be decided:\n" + described(every))
    say("".join(f"asked without need: {line}\n" for line in needless_lines[:MAX_LINES]))
    faults = sum(len(found.faults) for found in all_found)
    say(f"{sum(found.worlds for found in all_found)} worlds, {faults} faults, {time.monotonic() - began:.0f} s")
    sys.exit(1 if faults or needless_lines else 0)


def explored(piece: Piece, *, more: int) -> Found:
    found = search(piece, piece.bound + more)
    return found._replace(evidence=dict(found.evidence))  # what another process can be handed


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
