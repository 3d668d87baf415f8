"""What `mcfd setup` shows: for people, for scripts, and as a QR code for a till's camera."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.cli import answers
from daemon.cli.ledger import now
from daemon.cli.machine import print_pairs, reading_pairs
from daemon.cli.shared import print_table, say, warn
from daemon.core.clock import drift_seconds
from daemon.machines.reading import Reading, Silence
from daemon.setup import wording

if TYPE_CHECKING:
    from daemon.setup.search import Asked

DRIFT_SECONDS = 120


@dataclass(frozen=True)
class Done:
    """One machine that is set up, and what its tills need."""

    asked: Asked
    address: str
    key: str


def show_ports(asked: Sequence[Asked]) -> None:
    print_table((answers.PORT, answers.STATE), [(each.port, _outcome(each)) for each in asked])


def _outcome(asked: Asked) -> str:
    if isinstance(asked.found, Reading):
        return wording.ANSWERED(nim=asked.nim)
    if asked.found.why == "silent":
        return str(wording.SILENT)
    return str(wording.STRANGER) if asked.found.why == "stranger" else asked.found.reason


def show_machines(chosen: Sequence[Asked]) -> None:
    for each in chosen:
        if isinstance(each.found, Reading):
            say("")
            print_pairs([*reading_pairs(each.nim, each.found), (answers.PORT, each.port)])
            seconds = drift_seconds(now(), each.found.state.time)
            if seconds is not None and abs(seconds) > DRIFT_SECONDS:
                warn(wording.CLOCK_OFF(seconds=abs(seconds)))
    say("")


def show_end(place: Path | None, kept: Path | None, root: Path | None, done: Sequence[Done]) -> None:
    pairs: list[tuple[object, object]] = [(wording.CONFIGURATION, place)]
    if kept:
        pairs.append((wording.KEPT, kept))
    if root:
        pairs.append((wording.CERTIFICATE, wording.TRUST_IT(path=root)))
    for each in done:
        pairs.append((wording.ADDRESS, f"{each.address}/v1/mcf/{each.asked.nim}"))
        if each.key:
            pairs.append((wording.KEY, each.key))
    print_pairs(pairs)
    for each in done:
        if each.key and sys.stdout.isatty():
            _print_qr(each)
    if any(each.key for each in done):
        say(wording.SHOWN_ONCE)
    say(wording.NEXT)


def _print_qr(done: Done) -> None:
    """What a till scans instead of typing: address, NIM and key."""
    import msgspec
    import segno

    text = msgspec.json.encode({"url": done.address, "nim": done.asked.nim, "key": done.key}).decode()
    compact = (sys.stdout.encoding or "").lower().startswith("utf")  # half blocks, where the terminal knows them
    segno.make(text, error="l", micro=False).terminal(sys.stdout, compact=compact)


def told(
    place: Path | None, kept: Path | None, root: Path | None, asked: Sequence[Asked], done: Sequence[Done]
) -> dict[str, object]:
    return {
        "config": str(place) if place else None,
        "kept": str(kept) if kept else None,
        "certificate": str(root) if root else None,
        "ports": [_port(each) for each in asked],
        "machines": [_machine(each) for each in done],
    }


def _port(asked: Asked) -> dict[str, object]:
    if isinstance(asked.found, Silence):
        return {"port": str(asked.port), "nim": None, "why": asked.found.why, "reason": asked.found.reason}
    return {"port": str(asked.port), "nim": asked.nim, "why": None, "reason": None}


def _machine(done: Done) -> dict[str, object]:
    found = done.asked.found
    state = found.state if isinstance(found, Reading) else None
    return {
        "nim": done.asked.nim,
        "ifu": state.ifu if state else None,
        "trade_name": found.taxpayer[0] if isinstance(found, Reading) else None,
        "port": str(done.asked.port),
        "address": done.address,
        "key": done.key or None,
    }
