"""People who log in to the shop's page: a name, a password, and a session that their browser shows by a cookie.

A session is known by the SHA-256 of what the cookie holds, and ends by logout, by `IDLE_MS` without a request, and at once when the
person is disabled or gets another password. Passwords are tried one after the other, in a thread, and no oftener than
`common.login_limits` has it: guessing costs the box neither memory nor the tills' time, and keeps nobody out.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from typing import Final, ParamSpec, Protocol, TypeVar

import structlog

from common.cookies import cookie_of, set_cookie
from common.login_limits import (
    DEVICE_SECONDS,
    Budget,
    LoginLimits,
    Place,
    Rules,
    known_device,
    network_of,
    new_device,
)
from common.passwords import NOBODY, fits, hash_password
from common.turns import Busy, Turns
from daemon.api.http.answers import Header, Headers
from daemon.api.refusals import TooManyRequests, WrongPassword
from daemon.core.audit import Actor
from daemon.core.people import Person, Session
from daemon.language import Text
from daemon.usecases.ports import Clock

log = structlog.get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

COOKIE: Final = "mcfd_session"
IDLE_MS: Final = 12 * 3_600_000
DEVICE: Final = "mcfd_device"
"""The cookie of a browser in which somebody has logged in."""
RULES: Final = Rules(account=Budget(10, 600), address=Budget(5, 12))
"""From one address five at once and five a minute; of one account ten at once and six an hour from places that it is not known from."""


class PeopleStore(Protocol):
    """What the ledger knows of people; `find` and `session` look at it on the loop's own thread."""

    def find(self, name: str) -> tuple[Person, str] | None: ...
    def session(self, digest: bytes) -> Session | None: ...
    async def open_session(self, person_id: int, name: str, digest: bytes, *, at: int, by: Actor) -> None: ...
    async def end_session(self, digest: bytes, *, at: int, by: Actor) -> None: ...
    async def set_password(self, name: str, password: str, *, at: int, by: Actor) -> None: ...


class Logins:
    """`uses` is when each session was used last (ms), by its digest; whoever writes it down empties it."""

    def __init__(self, people: PeopleStore, clock: Clock) -> None:
        self.uses: dict[bytes, int] = {}
        self._people = people
        self._clock = clock
        self._limits = LoginLimits(RULES)
        self._turns = Turns()

    async def log_in(self, name: str, password: str, address: str, device: str = "") -> str:
        """What the cookie is to hold; `device` is what that of the browser holds. WrongPassword, or TooManyRequests when too many were wrong."""
        return await self._open(await self._proven(name, password, address, device), address)

    def device_of(self, name: str) -> str:
        """What the cookie of a browser is to hold in which that person has just logged in."""
        found = self._people.find(name)
        return new_device(name, found[1], self._clock() / 1000) if found is not None else ""

    async def change_password(self, session: Session, current: str, new: str, address: str) -> str:
        """Of the person whose session it is. All their sessions end; what the cookie is to hold from now on. Errors as above."""
        person = await self._proven(session.name, current, address)
        hashed = await self._in_turn("", True, hash_password, new)
        await self._people.set_password(person.name, hashed, at=self._clock(), by=Actor(f"user:{person.name}", address))
        return await self._open(person, address)

    async def _proven(self, name: str, password: str, address: str, device: str = "") -> Person:
        found = self._people.find(name)
        person, stored = found if found is not None and not found[0].disabled_at else (None, NOBODY)
        known = known_device(device, name, stored if person else None, self._clock() / 1000)
        place, exists = Place(network_of(address), known), person is not None
        if wait := self._limits.begin(name, place, exists=exists):
            log.warning("login.held_back", address=address)
            raise TooManyRequests(Text("too many wrong passwords"), wait)
        try:
            fitting = await self._in_turn(place.network, self._limits.is_known(name, place), fits, password, stored)
        except BaseException:
            self._limits.take_back(name, place, exists=exists)
            raise
        if person is None or not fitting:
            log.warning("login.failed", address=address, name=name[:32])
            raise WrongPassword
        self._limits.right(name, place)
        return person

    async def _open(self, person: Person, address: str) -> str:
        token = secrets.token_urlsafe(32)
        by = Actor(f"user:{person.name}", address)
        await self._people.open_session(person.id, person.name, _digest(token), at=self._clock(), by=by)
        return token

    async def log_out(self, token: str, address: str) -> None:
        session = self.who(token)
        if session is not None:
            by = Actor(f"user:{session.name}", address)
            await self._people.end_session(_digest(token), at=self._clock(), by=by)

    def who(self, token: str, *, is_used: bool = True) -> Session | None:
        """Whose session it is; None when there is none, or none any more. Microseconds: asked for every request. `is_used`: which keeps it
        from ending by idleness."""
        digest = _digest(token)
        session, now = self._people.session(digest), self._clock()
        if session is None or now - max(session.used_at, self.uses.get(digest, session.used_at)) > IDLE_MS:
            return None
        if is_used:
            self.uses[digest] = now
        return session

    def who_of(self, headers: Headers, *, is_used: bool = True) -> Session | None:
        token = token_of(headers)
        return self.who(token, is_used=is_used) if token else None

    def is_open(self, headers: Headers) -> bool:
        """Whether the session of a stream is still one; a stream does not use it."""
        return self.who_of(headers, is_used=False) is not None

    async def _in_turn(
        self, network: str, is_known: bool, work: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        try:
            async with self._turns.turn(network, is_known=is_known):
                return await asyncio.to_thread(work, *arguments, **named)
        except Busy:
            raise TooManyRequests(Text("too many people are logging in at this moment"), 2) from None


def token_of(headers: Headers) -> str:
    """What the session cookie of a request holds; empty without one."""
    return cookie_of(headers, COOKIE)


def session_cookie(token: str, *, tls: bool) -> Header:
    """`Set-Cookie` for a login; an empty `token` takes it back."""
    return b"set-cookie", set_cookie(COOKIE, token, tls=tls).encode()


def device_cookie(device: str, *, tls: bool) -> Header:
    """`Set-Cookie` beside it, for as long as the device is known."""
    return b"set-cookie", set_cookie(DEVICE, device, tls=tls, age=DEVICE_SECONDS).encode()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
