"""Headquarters' store on each database, new and empty."""

from __future__ import annotations

import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from support.hq.paper_box import EVENING, PaperBox
from support.hq.postgresql import DEBIAN, Cluster, binaries

from headquarters.core.reception import Message, receive
from headquarters.store.book.presences import Word
from headquarters.store.store import Store

UTC = ZoneInfo("UTC")
NOW = EVENING + 1000
KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def cluster():
    if binaries() is None:
        pytest.skip(f"needs Debian's package {DEBIAN}")
    cluster = Cluster()
    cluster.start()
    yield cluster
    cluster.remove()


@pytest.fixture(params=KINDS)
def new_url(request, tmp_path: Path):
    """The URL of a database that nobody has opened yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/hq.sqlite3"
        return
    cluster = request.getfixturevalue("cluster")
    url = cluster.database()
    yield url
    cluster.drop(url)


@pytest.fixture
def store(new_url):
    store = Store(new_url)
    store.url = new_url
    store.open()
    yield store
    store.close()


@pytest.fixture
def box(store):
    """A shop that headquarters knows."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=NOW)
    return box


def received(box, closure, store):
    headers, body = box.sent(closure)
    message = Message(via="https", headers=headers, body=body)
    return receive(message, store.register.ring(), now=time.time(), zone=UTC)


def take(store, box, *closures, now=NOW):
    return store.closures.take([received(box, closure, store) for closure in closures], now=now)


def said(box, presence, key=None):
    """That presence, as it comes to the store: signed with the box's key or another one of its keys."""
    return Word(presence, box.sent_presence(presence)[1], (key or box.key).id)


def open_findings(store):
    return sorted((finding.kind, *finding.facts.values()) for finding in store.findings.listed(is_open=True))
