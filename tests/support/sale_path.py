"""Through how many hands a certification goes, from the till's request to its answer: a daemon in this process, a simulated machine as another,
HTTP on loopback, some sales watched one by one (`python -m support.sale_path FOLDER`, with PYTHONPATH=tests; docs/architecture.md has how it counts)."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from inspect import CO_COROUTINE
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
from support.shop import Shop, invoice, wait_for

from daemon.app.serve import serve
from daemon.settings.source import load
from daemon.usecases.deferred import certify_waiting

ROOT = Path(__file__).parents[2]
PRODUCT = ("daemon", "bridge", "common")
WARM, WATCHED = 3, 12
OUTPUT = "path.json"
COUNTED = "mcfd_certifications_total{"

MOVES = frozenset(
    (
        *("posix.read", "posix.write", "posix.pwrite", "posix.statvfs", "posix.fsync"),
        *("Connection.execute", "Cursor.fetchone", "Cursor.fetchall"),
        *("Future.set_result", "Future.set_exception", "SimpleQueue.put_nowait", "generator.send"),
    )
)
"""What moves a sale on, as the interpreter names it: reading and writing line, ledger and files, waking a task or a thread, a step of a generator."""


class Watch:
    """Of each thread that is started after `install`, while `on`: which functions of the product ran, and which of them were hands."""

    def __init__(self) -> None:
        self.on = False
        self._ran: dict[CodeType, None] = {}
        self._hands: set[CodeType] = set()
        self._ours: dict[CodeType, bool] = {}

    def install(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def taken(self) -> dict[str, bool]:
        """The functions in the order in which they were first called, as `file:name`, each with whether it is a hand."""
        ran, hands = self._ran, self._hands
        self._ran, self._hands = {}, set()
        return {f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_qualname}": code in hands for code in list(ran)}

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.on:
            return
        if event == "call" and self._is_ours(frame.f_code):
            self._ran[frame.f_code] = None
            if frame.f_code.co_flags & CO_COROUTINE:
                self._hands.add(frame.f_code)
        elif event == "c_call" and _name(argument) in MOVES:
            self._hands.update(each.f_code for each in _stack(frame) if self._is_ours(each.f_code))

    def _is_ours(self, code: CodeType) -> bool:
        if code not in self._ours:
            path = Path(code.co_filename)
            is_named = not code.co_name.startswith(
                "<"
            )  # a comprehension or a lambda is part of the function in which it stands
            self._ours[code] = is_named and ROOT in path.parents and path.relative_to(ROOT).parts[0] in PRODUCT
        return self._ours[code]


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None)
    return f"{module}.{function.__qualname__}" if module else str(function.__qualname__)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def main(folder: Path) -> None:
    """Writes the functions of a sale as JSON, each with whether it is a hand; what only some of them went
    through was the daemon's other work."""
    watch, watched = Watch(), list[dict[str, bool]]()
    certify_waiting.LOOK = watch.LOOK = 3600.0  # what looks four times a second is seen beside every sale of a slow box
    with Shop(folder, config={"reports": {"aggregation_delay": 30}}) as shop:
        for machine in shop.machines:
            machine.start()
        shop._write_config()

        def till() -> None:
            try:
                wait_for(lambda: _is_ready(shop), "the daemon's start")
                for at in range(WARM + WATCHED):
                    watch.on = at >= WARM
                    assert shop.certify(invoice(f"F-{at}", 1000, 500), key=f"key-{at}").is_success
                    watch.on = False
                    watched.append(watch.taken())
                    wait_for(lambda done=at + 1: _certified(shop) == done, "what comes after the answer")
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        shop.key()
        client = threading.Thread(target=till)
        client.start()
        watch.install()
        serve(load(shop.config_file))
        client.join()
    watched = watched[WARM:]
    path = [name for name in watched[-1] if all(name in each for each in watched)]
    hands = {name: all(each[name] for each in watched) for name in path}
    (folder / OUTPUT).write_text(json.dumps(hands))


def _certified(shop: Shop) -> int:
    """How many sales are done with: each is counted after its answer."""
    lines = shop.http.get("/metrics").text.splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith(COUNTED))


def _is_ready(shop: Shop) -> bool:
    with suppress(httpx.HTTPError):
        return shop.http.get("/health/ready").is_success
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
