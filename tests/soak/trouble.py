"""Everything that happens to a shop in ten years, in half an hour."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter

from support.receivers.headquarters import HttpHeadquarters
from support.shop import Machine, Shop

SPOILED = "spoil=2%,late:0.3=0.5%,slow:0.2=0.5%"
RARELY = (
    "drop-reply@38h#1",
    "cut-executed@38h#1",
    "cut-before@38h#1",
    "unplug@38h#1",
    "lose-invoice@35h#1",
    "nak@31h#1",
)


class Trouble(threading.Thread):
    """Stirs until told to stop. `restarts` may be cleared: from then on the daemon lives on, so that its memory can be watched."""

    def __init__(self, shop: Shop, headquarters: HttpHeadquarters, seed: int) -> None:
        super().__init__(name="trouble", daemon=True)
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.restarts = threading.Event()
        self.restarts.set()
        self.over = threading.Event()
        self._shop = shop
        self._headquarters = headquarters
        self._dice = random.Random(f"trouble {seed}")
        self._is_up = True

    def run(self) -> None:
        for machine in self._shop.machines:
            machine.order("faults", spec=SPOILED, seed=self._dice.getrandbits(31))
        try:
            while not self.over.wait(self._dice.uniform(0.5, 4)):
                self._once()
            self._calm()
        except Exception as error:  # noqa: BLE001  told at the end
            self.wrong.append(f"trouble: {error!r}")

    def _once(self) -> None:
        on_the_line = {
            "unplug": self._unplug,
            "silence": self._silence,
            "power cut": self._reboot,
            "fault": self._fault,
        }
        elsewhere = {
            "headquarters goes or comes": self._headquarters_turn,
            "headquarters says no": self._no,
            "reload": self._hup,
        }
        with_us = {"kill -9": self._kill, "restart": self._restart} if self.restarts.is_set() else {}
        name, act = self._dice.choice([*on_the_line.items(), *elsewhere.items(), *with_us.items()])
        self.done[name] += 1
        act()

    def _calm(self) -> None:
        """All is well again; what was begun comes to its end."""
        for machine in self._shop.machines:
            machine.order("faults")
            machine.order("speak")
        if not self._is_up:
            self._headquarters_turn()

    # -- on the line ------------------------------------------------------------------------------------------------------

    def _machine(self) -> Machine:
        return self._dice.choice(self._shop.machines)

    def _unplug(self) -> None:
        self._machine().order("unplug", seconds=self._dice.uniform(0.1, 3))

    def _silence(self) -> None:
        self._machine().order("silence", seconds=self._dice.uniform(0.2, 4))

    def _reboot(self) -> None:
        self._machine().order("reboot", seconds=self._dice.uniform(0.1, 2))

    def _fault(self) -> None:
        self._machine().order("fault", spec=self._dice.choice(RARELY))

    # -- elsewhere --------------------------------------------------------------------------------------------------------

    def _headquarters_turn(self) -> None:
        if self._is_up:
            self._headquarters.kill()
        else:
            asyncio.run(self._headquarters.up())
        self._is_up = not self._is_up

    def _no(self) -> None:
        if self._is_up:
            steps = [{"status": 503}, {"cut": True}, {"delay": 1.0}, {"status": 429, "headers": {"retry-after": "1"}}]
            asyncio.run(self._headquarters.script(*self._dice.sample(steps, 2)))

    def _hup(self) -> None:
        os.kill(self._shop.pid, signal.SIGHUP)

    # -- the daemon -------------------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        self._shop.kill_daemon()
        time.sleep(self._dice.uniform(0, 1))
        self._shop.start_daemon(ready=False)

    def _restart(self) -> None:
        code = self._shop.stop_daemon()
        if code != 0:
            self.wrong.append(f"SIGTERM ended the daemon with {code}")
        self._shop.start_daemon(ready=False)
