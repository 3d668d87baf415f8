"""Whether somebody is who they say: a password tried in a thread, in its turn, and no oftener than the limits have it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from common.login_limits import LoginLimits, LoginPlace, LoginRules, network_of, trusted_device
from common.passwords import NOBODY, fits, hash_password
from common.turns import Turns


class TooManyTries(Exception):
    """`seconds` until it may be tried again."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(f"too many wrong passwords; again in {seconds} s")


class Attempted(NamedTuple):
    """A name and a password as typed, the address they come from (empty where it is not known) and what the cookie of the device holds."""

    name: str
    password: str
    address: str
    device: str = ""


class LoginGuard:
    """One for each program. Guessing costs it neither memory nor the time of others, and keeps nobody out."""

    def __init__(self, rules: LoginRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = LoginLimits(rules, clock)
        self._turns = Turns()

    async def check(self, tried: Attempted, stored: str | None, now: float) -> bool:
        """`stored`: the hash of that person; None for nobody, which takes as long. `now`: seconds since 1970. TooManyTries, or Busy."""
        exists = stored is not None
        device = trusted_device(tried.device, tried.name, stored, now)
        place = LoginPlace(network_of(tried.address), device)
        if wait := self._limits.begin(tried.name, place, exists=exists):
            raise TooManyTries(wait)
        try:
            async with self._turns.turn(place.network, is_known=self._limits.is_known(tried.name, place)):
                fitting = await asyncio.to_thread(fits, tried.password, stored or NOBODY)
        except BaseException:
            self._limits.take_back(tried.name, place, exists=exists)
            raise
        if not exists or not fitting:
            return False
        self._limits.right(tried.name, place)
        return True

    async def hash(self, password: str) -> str:
        """Of a new password, for somebody who is logged in. Busy when too many are at it."""
        async with self._turns.turn(is_known=True):
            return await asyncio.to_thread(hash_password, password)
