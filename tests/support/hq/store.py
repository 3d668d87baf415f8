"""Headquarters' store on each database, new and empty."""

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
from sqlalchemy import event, select
from support.hq.paper_box import EVENING, PaperBox
from support.hq.postgresql import DEBIAN, Cluster, binaries

from headquarters.core.reception import Message, receive
from headquarters.store import tables
from headquarters.store.book.presences import ReceivedPresence
from headquarters.store.register import RegisterContent
from headquarters.store.store import HqStore

UTC = ZoneInfo("UTC")
NOW = EVENING + 1000
KINDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.long))


@pytest.fixture(scope="session")
def cluster():
    if binaries() is None:
        pytest.skip(f"needs Debian's package {DEBIAN}")
    cluster = Cluster(lasting=False)
    cluster.start()
    yield cluster
    cluster.remove()


@pytest.fixture(params=KINDS)
def new_url(request, tmp_path: Path):
    """The URL of a database that was not opened yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/hq.sqlite3"
        return
    cluster = request.getfixturevalue("cluster")
    url = cluster.database()
    yield url
    cluster.drop(url)


@pytest.fixture(scope="session")
def copied_file(tmp_path_factory):
    """SQLite's file after the first start."""
    file = tmp_path_factory.mktemp("made") / "hq.sqlite3"
    _make(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def copied_database(cluster):
    """PostgreSQL's, of which every test has the tables, and no row."""
    url = cluster.database()
    _make(url)
    return url


def _make(url: str) -> None:
    store = HqStore(url)
    store.open()
    store.close()


@pytest.fixture(params=KINDS)
def database_url(request, tmp_path: Path):
    """The URL of a database with its tables and nothing in them. Tests that change the tables take `new_url`."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("copied_file"), tmp_path / "hq.sqlite3")
        return f"sqlite:///{tmp_path}/hq.sqlite3"
    url = request.getfixturevalue("copied_database")
    request.getfixturevalue("cluster").empty(url)
    return url


@pytest.fixture
def store(database_url):
    """On a disk that need not last: no test of it cuts the power."""
    with _opened(database_url) as store:
        yield store


@pytest.fixture
def new_store(new_url):
    """On a database of its own, whose tables it has made."""
    with _opened(new_url) as store:
        yield store


@contextlib.contextmanager
def _opened(url: str):
    store = HqStore(url)
    store.url = url
    if store.database.is_sqlite:
        event.listen(store.database.engine, "connect", _sync_nothing)
    store.open()
    yield store
    store.close()


def _sync_nothing(connection: sqlite3.Connection, _: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture
def box(store):
    """A shop that headquarters knows."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=NOW)
    return box


def received(box, closure, store, at=None):
    """By HTTPS, or from the stream that has received it at `at` (ms)."""
    headers, body = box.sent(closure)
    message = Message(via="https" if at is None else "nats", headers=headers, body=body, at=at)
    return receive(message, store.register.ring(), now=time.time(), zone=UTC)


def take(store, box, *closures, now=NOW):
    return store.closures.store([received(box, closure, store) for closure in closures], now=now)


def presence_word(box, presence, key=None):
    """That presence, as it comes to the store: signed with the box's key or another one of its keys."""
    return ReceivedPresence(presence, box.sent_presence(presence)[1], (key or box.key).id)


def copy_of(store):
    """The register as its file has it."""
    with store.register.copied() as (_, pieces):
        return msgspec.json.decode(b"".join(pieces), type=RegisterContent)


def copy_with_keys(store, change):
    """The same, a revision later, with each key as `change` makes it."""
    copy = copy_of(store)
    keys = [msgspec.Raw(msgspec.json.encode(change(msgspec.json.decode(row)))) for row in copy.rows["box_key"]]
    return msgspec.structs.replace(copy, rows={**copy.rows, "box_key": keys}, revision=copy.revision + 1)


def evidence_of(store, id_):
    """As it came."""
    return store.database.scalar(select(tables.evidence.c.body).where(tables.evidence.c.id == id_))


def open_findings(store):
    return sorted((finding.kind, *finding.facts.values()) for finding in store.findings.listed(is_open=True))
