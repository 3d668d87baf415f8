"""People who log in: wrong passwords, sessions that end, cookies, and pages of other sites."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.ledgers.ledger import START, opened

from common import login_guard
from common.passwords import hash_password
from common.web.security import cookie_of, is_own_form
from daemon.api.access.login import COOKIE, Logins, session_cookie
from daemon.api.refusals import TooManyRequests, WrongPassword
from daemon.core.clock import DAY, HOUR
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.people import create_person, disable_person

pytestmark = pytest.mark.usefixtures("cheap_passwords")

PASSWORD = "mil et sorgho"  # noqa: S105  of nobody
HERE = "192.168.1.7"


class Clock:
    now = START

    def __call__(self) -> int:
        return self.now


async def test_a_session_from_login_to_logout(tmp_path: Path) -> None:
    """The right password opens one, every request finds it, logout ends it; the cookie's content is nowhere in the file."""
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        await store.ledger.write(create_person, "awa", "manager", hash_password(PASSWORD), at=START)
        logins = Logins(store.ledger, Clock())
        token = await logins.log_in("awa", PASSWORD, HERE)
        name, value = session_cookie(token, tls=True)
        assert name == b"set-cookie"
        assert {b"HttpOnly", b"SameSite=Strict", b"Secure", b"Path=/"} <= set(value.split(b"; "))
        session = logins.who_of([(b"cookie", b"lang=fr; " + value.partition(b";")[0])], tls=True)
        assert (session.name, session.role) == ("awa", "manager")
        await logins.log_out(token, HERE)
        assert logins.who(token) is None
        entries = [(entry.action, entry.actor, entry.address) for entry in await store.ledger.read(newest_entries, 2)]
        assert entries == [("user.logged_out", "user:awa", HERE), ("user.logged_in", "user:awa", HERE)]
        everything = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240  local files
        assert token.encode() not in everything


async def test_a_session_ends_when_nobody_uses_it(tmp_path: Path) -> None:
    """12 hours after its last request; what a screen asks by itself, or an open stream, is no use of it."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        await store.ledger.write(create_person, "awa", "manager", hash_password(PASSWORD), at=START)
        clock = Clock()
        logins = Logins(store.ledger, clock)
        token = await logins.log_in("awa", PASSWORD, HERE)
        clock.now = START + 12 * HOUR
        assert logins.who(token) is not None
        clock.now += 12 * HOUR
        assert logins.who(token) is not None
        clock.now += 12 * HOUR
        cookie = [(b"cookie", session_cookie(token, tls=False)[1].partition(b";")[0])]
        assert logins.who(token, is_used=False) is not None
        assert logins.who_of(cookie, tls=False, is_used=False)
        clock.now += 1
        assert not logins.who_of(cookie, tls=False, is_used=False)
        assert logins.who(token) is None
        clock.now = START + 400 * DAY  # a clock that is ahead, and is put right
        token = await logins.log_in("awa", PASSWORD, HERE)
        clock.now = START
        assert logins.who(token) is None


async def test_wrong_names_and_wrong_passwords_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither answer nor log tells whether there is such a person; after five a minute that address alone waits."""
    monkeypatch.setattr("daemon.api.access.login.LoginGuard", partial(login_guard.LoginGuard, clock=lambda: 0.0))
    async with opened(tmp_path / "ledger.sqlite3") as store:
        await store.ledger.write(create_person, "awa", "manager", hash_password(PASSWORD), at=START)
        await store.ledger.write(create_person, "old", "manager", hash_password(PASSWORD), at=START)
        await store.ledger.write(disable_person, "old", at=START)
        logins = Logins(store.ledger, Clock())
        content = set()
        with capture_logs() as logs:
            for name, password in (("awa", "x"), ("nobody", PASSWORD), ("old", PASSWORD), ("awa", ""), ("", "")):
                with pytest.raises(WrongPassword) as refused:
                    await logins.log_in(name, password, HERE)
                content.add(str(refused.value))
        assert content == {"the name or the password is wrong"}
        assert [entry["event"] for entry in logs] == ["login.failed"] * 5
        with pytest.raises(TooManyRequests):
            await logins.log_in("awa", PASSWORD, HERE)
        assert await logins.log_in("awa", PASSWORD, "192.168.1.8")


async def test_ones_own_password(tmp_path: Path) -> None:
    """With the current one alone, and all sessions end; a wrong one is counted as a wrong login is."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        await store.ledger.write(create_person, "awa", "seller", hash_password(PASSWORD), at=START)
        logins = Logins(store.ledger, Clock())
        phone, desk = [await logins.log_in("awa", PASSWORD, HERE) for _ in range(2)]
        session = logins.who(phone)
        assert session is not None
        for wrong in ("", "x", "sorgho et mil"):
            with pytest.raises(WrongPassword):
                await logins.change_password(session, wrong, "sorgho et mil", HERE)
        assert logins.who(phone) == session
        changed = await logins.change_password(session, PASSWORD, "sorgho et mil", HERE)
        assert [logins.who(token) is not None for token in (phone, desk, changed)] == [False, False, True]
        entries = [(entry.action, entry.actor, entry.address) for entry in await store.ledger.read(newest_entries, 2)]
        assert entries == [("user.logged_in", "user:awa", HERE), ("user.password_changed", "user:awa", HERE)]
        assert await logins.log_in("awa", "sorgho et mil", HERE)
        with pytest.raises(WrongPassword):
            await logins.log_in("awa", PASSWORD, HERE)
        with pytest.raises(WrongPassword):
            await logins.change_password(session, PASSWORD, "mil et fonio", HERE)
        with pytest.raises(TooManyRequests):
            await logins.change_password(session, "sorgho et mil", "mil et fonio", HERE)


async def test_many_at_once_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One password is tried at a time, four may wait, the rest get 429: no flood costs more than one core, nor does the next one."""
    running, most = 0, 0

    async def try_slowly(*_: object) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return False

    monkeypatch.setattr(login_guard.asyncio, "to_thread", try_slowly)
    async with opened(tmp_path / "ledger.sqlite3") as store:
        logins = Logins(store.ledger, Clock())
        for _ in range(2):
            results = await asyncio.gather(
                *(logins.log_in("awa", "x", f"10.0.0.{number}") for number in range(20)), return_exceptions=True
            )
            kinds = [type(result).__name__ for result in results]
            assert most == 1
            assert (kinds.count("WrongPassword"), kinds.count("TooManyRequests")) == (4, 16)


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "http://box", "host": "box"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"origin": "http://box:8480", "host": "box:8480"}, True),
        ({"origin": "http://evil:8480", "host": "box:8480"}, False),
        ({"origin": "null", "host": "box"}, False),
        ({"host": "box"}, False),
    ],
)
def test_a_change_comes_from_a_page_of_the_box(headers: dict[str, str], ours: bool) -> None:
    """Another site in the same browser has the cookie sent by no modern browser, and is refused besides."""
    assert is_own_form(headers) is ours


@pytest.mark.parametrize("cookie", ["", "mcfd_session", "x=1", 'mcfd_session="', "mcfd_session=\xff; ;;=", "a" * 9000])
def test_cookies_that_are_none(cookie: str) -> None:
    """Whatever a browser sends there, it is no session and no error."""
    assert cookie_of([(b"cookie", cookie.encode("latin-1"))], COOKIE, tls=False) in {"", '"', "\xff"}


@pytest.mark.parametrize(
    "before", ["a=1; ", "broken{}; ", 'open="; ', "x\xff=\xff;", "mcfd_sessions=no; my_mcfd_session=no;", "a=\\\\;"]
)
def test_another_programs_cookie_hides_ours_not(before: str) -> None:
    """Behind one that is not as the RFC has it, or of nearly the same name, the session is found all the same."""
    value = f"{before}mcfd_session=token; last=1"
    assert cookie_of([(b"accept", b"*/*"), (b"cookie", value.encode("latin-1"))], COOKIE, tls=False) == "token"


async def test_guessing_keeps_nobody_out(tmp_path: Path) -> None:
    """Ten tries at an account from anywhere; its person comes in from a known place or browser, others from those addresses."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        for name in ("awa", "issa"):
            await store.ledger.write(create_person, name, "manager", hash_password(PASSWORD), at=START)
        logins = Logins(store.ledger, Clock())
        assert await logins.log_in("awa", PASSWORD, HERE)
        device = logins.device_of("awa")
        answers = []
        for number in range(40):
            try:
                await logins.log_in("awa", "x", f"fe80::{number}%eth0" if number % 2 else f"10.0.0.{number}")
            except (WrongPassword, TooManyRequests) as error:
                answers.append(type(error))
        assert answers.count(WrongPassword) == 10
        with pytest.raises(TooManyRequests):
            await logins.log_in("awa", PASSWORD, "10.0.0.99")
        assert await logins.log_in("awa", PASSWORD, HERE)
        assert await logins.log_in("awa", PASSWORD, "10.0.0.98", device)
        assert await logins.log_in("issa", PASSWORD, "10.0.0.2")


async def test_over_tls_only_a_cookie_with_the_prefix_counts() -> None:
    """A browser takes `__Host-` over TLS and from this host alone; one without it may be planted by another host or over plain HTTP."""
    assert cookie_of([(b"cookie", b"mcfd_session=planted; __Host-mcfd_session=own")], COOKIE, tls=True) == "own"
    assert (
        cookie_of([(b"cookie", b"mcfd_session=planted"), (b"cookie", b"__Host-mcfd_session=own")], COOKIE, tls=True)
        == "own"
    )
    assert cookie_of([(b"cookie", b"mcfd_session=planted")], COOKIE, tls=True) == ""
    assert session_cookie("own", tls=True)[1].startswith(b"__Host-mcfd_session=own; Path=/;")
    assert session_cookie("own", tls=False)[1].startswith(b"mcfd_session=own; Path=/;")
