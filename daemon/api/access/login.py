"""Login to the shop's page: a name, a password, and a session cookie.

The ledger stores the SHA-256 of the cookie's value. A session ends by logout, after `IDLE_MS` without a request, and at
once when the person is disabled or gets another password. Passwords are checked one at a time, in a thread, at the rate
of `common.login_guard`: guessing costs the box little memory and time, and locks no person out."""

import hashlib
import secrets
from typing import Final

import structlog

from common.language import Text
from common.login_guard import DEVICE_SECONDS, Attempted, Budget, LoginGuard, LoginRules, TooManyTries, new_device
from common.turns import Busy
from common.web.security import cookie_of, set_cookie
from daemon.api.http.answers import Header, Headers
from daemon.api.refusals import TooManyRequests, WrongPassword
from daemon.core.audit import Actor
from daemon.core.clock import Clock
from daemon.core.people import Person, Session
from daemon.store.access import LedgerAccess
from daemon.store.tables.people import IDLE_MS, end_session, find_person, find_session, open_session, set_password

log = structlog.get_logger(__name__)

COOKIE: Final = "mcfd_session"
DEVICE: Final = "mcfd_device"
"""Names of the cookies of a session and of a known device."""
RULES: Final = LoginRules(account=Budget(10, 600), address=Budget(5, 12))
"""Tries from one address: five, then five a minute; for one account from unknown places: ten, then six an hour."""


class Logins:
    """`uses`: last use of each session (ms) by its digest; emptied when written to the ledger."""

    def __init__(self, ledger: LedgerAccess, clock: Clock) -> None:
        self.uses: dict[bytes, int] = {}
        self._ledger = ledger
        self._clock = clock
        self._guard = LoginGuard(RULES)

    async def log_in(self, name: str, password: str, address: str, device: str = "") -> str:
        """The value for the session cookie. `device`: the browser's device cookie. WrongPassword, or TooManyRequests
        after too many wrong ones."""
        return await self._open(await self._proven(name, password, address, device), address)

    def device_of(self, name: str) -> str:
        """The value for the device cookie after a login."""
        found = self._ledger.peek(find_person, name)
        return new_device(name, found[1], self._clock() / 1000) if found is not None else ""

    async def change_password(self, session: Session, current: str, new: str, address: str) -> str:
        """Changes the password of the session's person and ends all their sessions; returns the new value for the
        session cookie. Errors as `log_in`."""
        person = await self._proven(session.name, current, address)
        try:
            hashed = await self._guard.hash(new)
        except Busy:
            raise TooManyRequests(Text("too many people are logging in at this moment"), 2) from None
        await self._ledger.write(
            set_password, person.name, hashed, at=self._clock(), by=Actor(f"user:{person.name}", address)
        )
        return await self._open(person, address)

    async def _proven(self, name: str, password: str, address: str, device: str = "") -> Person:
        found = self._ledger.peek(find_person, name)
        person, stored = found if found is not None and not found[0].disabled_at else (None, None)
        try:
            fitting = await self._guard.check(Attempted(name, password, address, device), stored, self._clock() / 1000)
        except TooManyTries as error:
            log.warning("login.held_back", address=address)
            raise TooManyRequests(Text("too many wrong passwords"), error.seconds) from None
        except Busy:
            raise TooManyRequests(Text("too many people are logging in at this moment"), 2) from None
        if person is None or not fitting:
            log.warning("login.failed", address=address, name=name[:32])
            raise WrongPassword
        return person

    async def _open(self, person: Person, address: str) -> str:
        token = secrets.token_urlsafe(32)
        by = Actor(f"user:{person.name}", address)
        await self._ledger.write(open_session, person.id, person.name, _digest(token), at=self._clock(), by=by)
        return token

    async def log_out(self, token: str, address: str) -> None:
        session = self.who(token)
        if session is not None:
            by = Actor(f"user:{session.name}", address)
            await self._ledger.write(end_session, _digest(token), at=self._clock(), by=by)

    def who(self, token: str, *, is_used: bool = True) -> Session | None:
        """The session with that token; None if unknown or ended. `is_used`: the request counts as use."""
        digest = _digest(token)
        session, now = self._ledger.peek(find_session, digest), self._clock()
        # A clock that was ahead and was put right leaves no session of years.
        if session is None or abs(now - max(session.used_at, self.uses.get(digest, session.used_at))) > IDLE_MS:
            return None
        if is_used:
            self.uses[digest] = now
        return session

    def who_of(self, headers: Headers, *, tls: bool, is_used: bool = True) -> Session | None:
        """The session of a request's cookie."""
        token = cookie_of(headers, COOKIE, tls=tls)
        return self.who(token, is_used=is_used) if token else None


def session_cookie(token: str, *, tls: bool) -> Header:
    """`Set-Cookie` of the session; an empty `token` deletes it."""
    return b"set-cookie", set_cookie(COOKIE, token, tls=tls).encode()


def device_cookie(device: str, *, tls: bool) -> Header:
    """`Set-Cookie` of the device, for as long as it stays known."""
    return b"set-cookie", set_cookie(DEVICE, device, tls=tls, age=DEVICE_SECONDS).encode()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
