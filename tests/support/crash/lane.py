"""One machine, one ledger and one daemon that is killed at chosen points, again and again; and what has to hold after each.

A point is tried so: the till asks, the daemon dies at the point, it is started again, and the till asks the same with the same key.
"""

import json
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Literal, NamedTuple, Self

import httpx
from support.crash.crashing import armed
from support.shop import PATIENCE, Machine, Shop, invoice, run_program, wait_for

from daemon.app.serve import EXIT_DISK
from daemon.store.maintenance.verify import verify

When = Literal["before", "after"]
Direction = Literal["in", "out"]
WHEN: tuple[When, ...] = ("before", "after")
DIRECTIONS: tuple[Direction, ...] = ("in", "out")
QUICK_LINE = {"reply_timeout": 0.1, "certify_timeout": 0.3, "credit_timeout": 1.0}
"""Timers of a line without a wire, for tests in which many of them run out."""
INSISTENCE = 60.0
ONE_ITEM = (15000,)
THREE_ITEMS = (15000, 118, 999)

_CERTIFIED = "SELECT number, code, tc, fvc, frc, total_ttc FROM certification WHERE state = 'certified' ORDER BY seq"
_OPEN = "SELECT number, state FROM certification WHERE seq IS NULL"
_NOT_IN_TOTALS = "SELECT 1 FROM certification JOIN total USING (book_id) WHERE certification.seq > total.seq"
_BOOK = "SELECT tc, fvc, frc, attention, unexplained FROM book WHERE mode = 'live'"


class AtFrame(NamedTuple):
    """When the `frame`-th request from now on has come in, or its answer goes out. With `power`, the machine goes dark as well."""

    frame: int
    when: When
    direction: Direction
    power: bool = False


class AtCommit(NamedTuple):
    """Before the `commit`-th commit from now on, with everything written; or after it, before any answer."""

    commit: int
    when: When


class AtSync(NamedTuple):
    """At the `sync`-th sync from now on, which fails with an error of the disk."""

    sync: int


Point = AtFrame | AtCommit | AtSync


def every_frame(count: int) -> list[AtFrame]:
    """Before and after every frame, in both directions; and with a power cut of the machine instead of the request's execution."""
    frames = range(1, count + 1)
    points = [AtFrame(f, w, d) for f in frames for d in DIRECTIONS for w in WHEN]
    return points + [AtFrame(f, "before", "in", power=True) for f in frames]


def every_commit(count: int) -> list[AtCommit]:
    return [AtCommit(n, when) for n in range(1, count + 1) for when in WHEN]


class Lane:
    def __init__(
        self,
        folder: Path,
        *,
        sandbox: bool = False,
        storage: Mapping[str, Any] | None = None,
        hurry: Mapping[str, Any] | None = None,
        **configured: Any,
    ) -> None:
        """`storage` is that section of the configuration, `hurry` as `support.hurried.arm` takes it; `configured` goes to the shop."""
        folder.mkdir()
        self.machine = Machine(folder, lasting=False)
        self._crash = folder / "crash"
        self.shop = Shop(
            folder,
            machines=(self.machine,),
            config={
                "sandbox": {"enabled": sandbox},
                "reports": {"aggregation_delay": 0.02},
                "storage": storage or {},
            },
            first=armed(self._crash, hurry=hurry),
            **configured,
        )
        if storage and "path" in storage:
            self.shop.ledger = Path(storage["path"])
        self.exit_code = 0
        """Of the last death."""
        self._numbers = 0
        self.closures = 0
        self.stage = ""
        """Where the machine stood at the last point that was a frame."""
        self.certified: list[dict[str, Any]] = []
        """What the machine has certified, as of the last check."""

    # -- to the point -------------------------------------------------------------------------------------------------

    def certify_through(self, point: Point, prices: Sequence[int] = ONE_ITEM) -> None:
        body, key = self.next_invoice(*prices)
        self.die_at(point, lambda: self.shop.certify(body, key=key))
        self.start()
        self.certified_once(body, key)

    def certify_together_through(self, point: Point, tills: int) -> None:
        """`tills` at once: intents ahead of their turn, an outcome that is stored while the next invoice is entered."""
        sales = [self.next_invoice() for _ in range(tills)]

        def work() -> None:
            with ThreadPoolExecutor(tills) as threads:
                for working in [threads.submit(self.shop.certify, body, key=key) for body, key in sales]:
                    with suppress(httpx.HTTPError):
                        working.result()

        if self.die_at(point, work):
            self.start()
        for body, key in sales:
            self.certified_once(body, key)

    def defer_through(self, point: Point) -> None:
        """A sale of a till that does not wait: taken on, and certified by itself."""
        body, key = self.next_invoice()
        self.die_at(point, lambda: self._deferred(body, key))
        self.ensure()
        self._deferred(body, key)
        self.certified_once(body, key)

    def _deferred(self, body: dict[str, Any], key: str) -> None:
        """Sent, and asked after until it is certified; HTTPError when the daemon dies meanwhile."""
        headers = {**self.shop.headers(key=key), "Prefer": "respond-async"}
        answer = self.shop.http.post(f"/v1/mcf/{self.machine.nim}/certify", json=body, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        wait_for(lambda: self.shop.get(f"requests/{key}").json()["status"] == "certified", f"{key} certified")

    def close_through(self, point: Point) -> None:
        body, key = self.next_invoice()
        self.certified_once(body, key)
        self.shop.x_with(len(self.certified) - self._in_closures())
        key = f"Z {key}"
        self.die_at(point, lambda: self.shop.close_period(key=key))
        self.start()
        self.closed_once(key)

    def recover_through(self, first: Point, point: Point) -> bool:
        """Killed at `first` in the middle of an invoice, and at `point` of the recovery from that; False when the recovery
        came to its end before."""
        body, key = self.next_invoice()
        self.die_at(first, lambda: self.shop.certify(body, key=key))
        reached = self.die_at(point)
        if reached:
            self.start()
        self.certified_once(body, key)
        return reached

    def die_at(self, point: Point, work: Callable[[], Any] | None = None) -> bool:
        """Does `work` until the daemon is dead at that point, without any its start; False when that was not reached and the daemon lives."""
        if not isinstance(point, AtFrame):
            return self._die_at_commit(point, work)
        order = self.machine.order
        order("pause-at", next=point.frame, when=point.when, direction=point.direction)
        with self.doing(self._begun(work)):
            wait_for(self.machine.is_stopped, f"{point}")
            self.stage = order("snapshot", log=False)["stage"]
            self.shop.kill_daemon()
        if point.power:
            order("reboot", seconds=0)
        else:
            order("resume")
        return True

    def _begun(self, work: Callable[[], Any] | None) -> Callable[[], Any]:
        """What goes on beside the wait. The start does not: which process is to die is known before it can be there."""
        if work is not None:
            return work
        self.shop.launch_daemon()
        return lambda: None

    def _die_at_commit(self, point: AtCommit | AtSync, work: Callable[[], Any] | None) -> bool:
        self._crash.write_text(json.dumps(point._asdict()))
        with self.doing(self._begun(work)) as working:
            wait_for(lambda: self._is_dead() or (not working.is_alive() and self._is_idle()), f"{point}", INSISTENCE)
        reached = not self.shop.is_running
        self._crash.unlink(missing_ok=True)
        return reached

    @contextmanager
    def doing(self, work: Callable[[], Any]) -> Iterator[Thread]:
        """`work` goes on beside the block. What the till sees of a daemon that dies is anything but an answer."""

        def run() -> None:
            with suppress(httpx.HTTPError):
                work()

        thread = Thread(target=run)
        thread.start()
        try:
            yield thread
        finally:
            thread.join(timeout=PATIENCE)

    def _is_dead(self) -> bool:
        if self._crash.exists():
            return False
        self.exit_code = self.shop.wait_for_exit()
        assert self.exit_code in (-signal.SIGKILL, EXIT_DISK)
        return True

    def _is_idle(self) -> bool:
        """Everything that follows from the request is done, and the daemon has not died of it."""
        with suppress(httpx.HTTPError):
            if self.shop.http.get("/health/ready").is_success and not self._tick_is_due():
                time.sleep(0.15)  # for what is not known to come
                return self._crash.exists()
        return False

    def _tick_is_due(self) -> bool:
        """On a busy box it may come long after its 0.02 s."""
        with closing(sqlite3.connect(self.shop.ledger)) as ledger:
            return ledger.execute(_NOT_IN_TOTALS).fetchone() is not None

    def start(self) -> None:
        self.shop.start_daemon()

    def ensure(self) -> None:
        """After a test that failed, the next one begins with a daemon that runs."""
        if not self.shop.is_running:
            self.machine.order("resume")
            self._crash.unlink(missing_ok=True)
            self.start()

    # -- what has to hold -----------------------------------------------------------------------------------------------

    def next_invoice(self, *prices: int) -> tuple[dict[str, Any], str]:
        self._numbers += 1
        number = f"F-{self._numbers}"
        return invoice(number, *prices), f"key of {number}"

    def certified_once(self, body: dict[str, Any], key: str) -> None:
        """The retry gets the machine's own code, whatever became of the first try; and once more, replayed."""
        answer = self.shop.certify(body, key=key)
        assert answer.status_code == 200, answer.text
        again = self.shop.certify(body, key=key)
        assert (again.content, again.headers["idempotency-replayed"]) == (answer.content, "true")
        self.check()
        (code,) = [entry["code"] for entry in self.certified if entry["number"] == body["invoiceNumber"]]
        assert code == answer.json()["codeSecef"]

    def closed_once(self, key: str) -> None:
        """The retry gets the one closure that there is, and its number is the next one."""
        answer = self.shop.close_period(key=key)
        assert answer.status_code == 201, answer.text
        self.closures += 1
        report = answer.json()
        assert report["z_number"] == self.closures
        again = self.shop.close_period(key=key)
        assert (again.content, again.headers["idempotency-replayed"]) == (answer.content, "true")
        history = self.shop.get("reports").json()["reports"]
        assert [z["z_number"] for z in history] == list(range(1, self.closures + 1))
        assert sum(z["certs_count"] for z in history) == len(self.certified)
        assert sum(z["total_ttc"] for z in history) == sum(entry["total"] for entry in self.certified)
        self.check()

    def check(self) -> None:
        """Nothing lost, nothing doubled: the ledger is the machine's own log; counters agree; the chain is sound; all has ended."""
        since = self.certified[-1]["tc"] if self.certified else 0
        self.certified += self.machine.certified(since)
        names = ("number", "code", "tc", "fvc", "frc", "total")
        with closing(sqlite3.connect(self.shop.ledger)) as ledger:
            assert ledger.execute(_CERTIFIED).fetchall() == [tuple(e[n] for n in names) for e in self.certified]
            assert not ledger.execute(_OPEN).fetchall()
            assert ledger.execute(_BOOK).fetchone() == (*self.machine.counters, "", 0)
        assert len({entry["number"] for entry in self.certified}) == len(self.certified)
        findings = verify(self.shop.ledger)
        assert findings.clean, findings.problems

    def check_totals(self) -> None:
        """X shows what the machine has counted since the last Z."""
        report = self.shop.x_with(len(self.certified) - self._in_closures())
        assert report["fvc_end"] == self.machine.counters[1]
        if report["certs_count"]:
            assert report["fvc_end"] - report["fvc_start"] + 1 == report["certs_count"]

    def _in_closures(self) -> int:
        history = self.shop.get("reports").json()["reports"]
        return sum(z["certs_count"] for z in history)

    def end_hurry(self) -> None:
        """Of the processes that are started from now on."""
        self.shop.first_act = armed(self._crash)

    def mcfd(self, *arguments: str) -> tuple[int, str]:
        """A command of the command line on this lane's configuration, as a process of its own: exit code and output."""
        words = [*arguments, "--config", str(self.shop.config_file)]
        done = run_program("mcfd", words, self.shop.environ, first=self.shop.first_act)
        return done.returncode, done.stdout + done.stderr

    # -- processes ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.shop)
            self.shop.start()
            self.shop.key()
            stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self.shop.__exit__(*raised)


def insist(ask: Callable[[], httpx.Response], status: int) -> httpx.Response:
    """Asks until that is the answer. What is not an answer is a problem of the machine or its line, or no connection at all; a
    machine that answers rubbish may also seem to refuse."""
    deadline = time.monotonic() + INSISTENCE
    while (answer := _ask(ask)) is None or answer.status_code != status:
        result = "no connection" if answer is None else answer.text
        assert answer is None or answer.status_code in (502, 503, 507) or "MACHINE_REFUSED" in result, result
        assert time.monotonic() < deadline, result
        time.sleep(0.1)
    return answer


def _ask(ask: Callable[[], httpx.Response]) -> httpx.Response | None:
    with suppress(httpx.HTTPError):
        return ask()
    return None
