"""The programs of docs/receivers, run as they stand there, and docs/upstream.md."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest
from jsonschema import Draft202012Validator
from support.ledgers.ledger import sent_by_a_box
from support.ledgers.outbox import make_outgoing
from support.ports import free_port
from support.receivers.headquarters import NatsHeadquarters, started, until
from support.receivers.nats_server import NIM, OTHER
from support.receivers.vectors import closure, event_of, proven
from support.shop import PLAIN

from common.wire.keys import PrivateKey, private_line
from common.wire.signing import is_receipt, sign
from daemon.core.delivery import Delivered, DeliveryRefused, RetryLater
from daemon.upstream.options import Options, compose, compose_trial, open_receiver

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGE = (DOCS / "upstream.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, flags=re.DOTALL)


def program(name):
    """One of the programs that the page names."""
    assert f"(receivers/{name})" in PAGE
    return (DOCS / "receivers" / name).read_text()


SHOP, OTHER_SHOP = PrivateKey(b"1" * 32), PrivateKey(b"2" * 32)
THIEF = PrivateKey(b"3" * 32)
KEYS = {NIM: SHOP, OTHER: OTHER_SHOP}


@pytest.fixture
def folder(tmp_path):
    """A directory with the programs of the page and the keys of two shops."""
    for name in ("closures.py", "receiver.py", "table.py"):
        (tmp_path / name).write_text(program(name))
    (tmp_path / "keys.json").write_text(json.dumps({nim: [key.public] for nim, key in KEYS.items()}))
    return tmp_path


@contextlib.contextmanager
def running(folder, name, **environment):
    """A program of the page, killed at the end."""
    paths = os.pathsep.join(str(path) for path in (ROOT, folder))
    process = subprocess.Popen(
        [sys.executable, name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def book(nim, count=3, **of_closure):
    """So many closures of one book, each after the one before."""
    closing = None
    found = []
    for z in range(1, count + 1):
        closing = closure(f"{nim} {of_closure} {z}", closing, entry=f"{nim} entry {z}", **of_closure)
        closing = proven(msgspec.structs.replace(closing, nim=nim))
        found.append(closing)
    return found


def signed(created, key=None, nim=None, at=None):
    """Headers and body as its box sends it."""
    body = event_of(created)
    return sign([key or KEYS[nim or created.nim]], created.report_id, at or int(time.time()), body), body


def signed_trial(key):
    """The message of `mcfd upstream test`."""
    body = compose_trial("t-2", NIM, at="2026-12-31T18:00:00Z", box="", key_id="")
    return sign([key], "t-2", int(time.time()), body), body


def table_of(folder):
    return contextlib.closing(sqlite3.connect(folder / "closures.sqlite3"))


def rows(folder, query="SELECT nim, z FROM closure ORDER BY nim, mode, z"):
    with table_of(folder) as table:
        try:
            return table.execute(query).fetchall()
        except sqlite3.OperationalError:  # the program has not made it yet
            return []


def junk():
    """What anybody may send, each with headers and a body."""
    good, other = book(NIM)[0], book(OTHER)[0]
    headers, body = signed(good)
    yield {}, b""
    yield {}, b"junk"
    yield {}, b"\xff\xfe\x00"
    yield {}, b"[" * 100_000
    yield headers, b"{}"
    yield headers, body + b" "
    yield {}, body  # unsigned
    yield headers | {"webhook-id": other.report_id}, body
    yield headers | {"webhook-signature": "v1a,AAAA v1,AAAA v9,x" + " v1a," * 50}, body
    yield headers | {"webhook-timestamp": "-7"}, body
    yield signed(good, THIEF)
    yield signed(other, SHOP)  # a stolen key of one shop, for another
    yield signed(proven(msgspec.structs.replace(good, nim="EL02000099-1")), SHOP)  # an unknown machine
    yield signed(msgspec.structs.replace(good, total_ttc=1))  # not what its body says
    yield signed(msgspec.structs.replace(good, chain_head="0" * 64))  # not its own hash


def post(port, headers, body):
    with httpx.Client(trust_env=False, timeout=60, verify=PLAIN) as client:
        return client.post(f"http://127.0.0.1:{port}/closures", headers=headers, content=body)


async def answers(port):
    with contextlib.suppress(httpx.TransportError):
        return post(port, {}, b"").status_code
    return None


@pytest.fixture
async def port(folder):
    """Where the receiver of the page listens, a process of its own."""
    port = free_port()
    with running(folder, "receiver.py", PORT=str(port)):
        await until(lambda: answers(port))
        yield port


@pytest.fixture
async def sender(folder, port):
    """The daemon's own, with the receipt asked for."""
    (folder / "key").write_text(private_line(b"1" * 32))
    options = Options(url=f"http://127.0.0.1:{port}/closures", key_files=(folder / "key",), receipt=True, timeout=10)
    receiver = open_receiver("https", options)
    yield receiver
    await receiver.aclose()


class TestTheReceiver:
    """The receiver of the page, as a process, and what a box sends it."""

    async def test_closures_of_two_shops(self, folder, port):
        """Each is kept once, however often it comes, and answered with a receipt; a box with a wrong clock is taken too."""
        for each in [*book(NIM), *book(OTHER, 2), *book(NIM)]:
            headers, body = signed(each)
            answer = post(port, headers, body)
            assert answer.status_code == 200
            assert is_receipt(answer.content, each.report_id, body)
        assert post(port, *signed(book(NIM, 4)[3], at=7)).status_code == 200
        assert rows(folder) == [(NIM, z) for z in (1, 2, 3, 4)] + [(OTHER, z) for z in (1, 2)]

    async def test_what_a_box_sends(self, folder, sender):
        """The daemon's own delivery reaches it, with the receipt asked for, and a stranger's is tried again."""
        own = {"subject": "closure", "nim": NIM}
        mine, foreign = book(NIM)[0], book(OTHER)[0]
        assert await sender.deliver(event_of(mine), report_id=mine.report_id, **own) == Delivered()
        assert isinstance(await sender.deliver(event_of(foreign), report_id=foreign.report_id, **own), RetryLater)
        assert await sender.deliver(b"{}", report_id="r", **own) == DeliveryRefused(
            'answered 422 {"error": "Object missing required field `specversion`"}'
        )
        assert rows(folder) == [(NIM, 1)]

    async def test_months_years_and_the_test(self, folder, tmp_path, port, sender):
        """What a box sends beside its Zs is taken too: parked, it would stand in its status for ever. Of `mcfd upstream test` nothing is stored."""
        trial = compose_trial("t-1", NIM, at="2026-12-31T18:00:00Z", box="", key_id="")
        assert await sender.trial(trial, event_id="t-1", nim=NIM) == Delivered()
        for entry in await sent_by_a_box(tmp_path / "ledger"):
            for _ in range(2):
                done = await sender.deliver(compose(entry), report_id=entry.report_id, subject="closure", nim=NIM)
                assert done == Delivered(), entry.kind
        assert post(port, *signed_trial(THIEF)).status_code == 401
        assert rows(folder) == [(NIM, 1), (NIM, 2)]
        expected = [("month", "2026-12", 5000), ("year", "2026", 5000)]
        assert rows(folder, "SELECT kind, period, total FROM calendar ORDER BY kind") == expected

    async def test_junk(self, folder, port):
        """Whatever comes is refused, nothing of it stands in the table, and the next closure is taken."""
        statuses = [post(port, headers, body).status_code for headers, body in junk()]
        assert set(statuses) <= {401, 422}
        assert post(port, {}, b"x" * 200_000).status_code == 413
        assert rows(folder) == []
        assert post(port, *signed(book(NIM)[0])).status_code == 200
        assert rows(folder) == [(NIM, 1)]


class TestTheTable:
    """The reader of the page, as a process, on a nats-server as shipped, with the reader's key as shipped."""

    @pytest.fixture
    async def headquarters(self, folder):
        async with started(NatsHeadquarters(folder)) as server:
            yield server

    @contextlib.contextmanager
    def reading(self, folder, headquarters):
        site = headquarters.site
        where = {"NATS_URL": headquarters.server.url, "NATS_CA": str(site.authority.path)}
        with running(folder, "table.py", NATS_CREDENTIALS=str(site.reader), **where) as process:
            yield process

    async def test_two_shops_and_junk(self, folder, headquarters):
        """With junk and a kill between: each closure is in the table once, and what is none is put aside with its place."""
        site = headquarters.site
        mine, others = book(NIM, 4), book(OTHER, 2)
        bad = list(junk())
        for part, (shop, nim, closures) in enumerate(
            ((site.shop, NIM, mine[:2]), (site.other_shop, OTHER, others), (site.shop, NIM, mine))
        ):
            with self.reading(folder, headquarters):
                client = await site.connect(headquarters.server.url, shop)
                for headers, body in bad[part::3]:
                    await client.publish(f"mcf.{nim}.closure", body, headers=headers)
                for each_closure in closures:
                    headers, body = signed(each_closure)
                    await client.publish(f"mcf.{nim}.closure", body, headers=headers)
                await client.flush()
                await client.close()
                zs = [(nim, each.z_number) for each in closures]
                await until(lambda zs=zs: set(zs) <= set(rows(folder)))
        assert rows(folder) == [(NIM, z) for z in (1, 2, 3, 4)] + [(OTHER, z) for z in (1, 2)]
        aside = rows(folder, "SELECT place, why FROM quarantine")
        assert len(aside) == len(bad)
        assert all(place.startswith("CLOSURES ") and why for place, why in aside)


class TestTheQueries:
    """The SQL of the page, on a table filled by the page's own program."""

    @pytest.fixture
    def fill(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        space = {}
        exec(compile(program("closures.py"), "closures.py", "exec"), space)  # noqa: S102  # the page is ours
        table, keys = space["open_table"]()

        def taken(*closures):
            with table:
                for each_closure in closures:
                    space["take"](table, keys, *signed(each_closure))

        yield taken
        table.close()

    def ask(self, folder, name):
        queries = re.split(r"^(?=-- \w+:)", program("checks.sql"), flags=re.MULTILINE)
        (query,) = [text for text in queries if text.startswith(f"-- {name}:")]
        with table_of(folder) as table:
            return table.execute(query).fetchall()

    def test_all_is_well(self, folder, fill):
        """Two shops and a sandbox: no finding but the money of the shops, and none of the sandbox."""
        fill(*book(NIM), *book(OTHER), *book(NIM, mode="test"))
        findings = {name: self.ask(folder, name) for name in ("missing", "forks", "chain", "counters")}
        assert findings == {"missing": [], "forks": [], "chain": [], "counters": []}
        assert len(self.ask(folder, "money")) == 6
        assert sum(total for _, _, total in self.ask(folder, "money")) == 6 * 16_000

    def test_gaps(self, folder, fill):
        """Before the first that came and between; each book for itself."""
        mine, others = book(NIM, 6), book(OTHER, 3)
        fill(*mine[2:4], mine[5], *others[:2], *book(NIM, 2, mode="test")[1:])
        assert self.ask(folder, "missing") == [(NIM, "live", 1), (NIM, "live", 2), (NIM, "live", 5), (NIM, "test", 1)]

    def test_forks(self, folder, fill):
        """The same number twice, and two closures after one: both stay in the table."""
        one, two, three = book(NIM)
        again = closure("again", one, entry="other", epoch=1)
        later = proven(msgspec.structs.replace(closure("later", two, entry="x", epoch=1), z_number=4))
        fill(one, two, three, *(proven(msgspec.structs.replace(each, nim=NIM)) for each in (again, later)))
        assert self.ask(folder, "forks") == [(NIM, "live", 2, 2), (NIM, "live", 4, 2)]
        assert len(rows(folder)) == 5
        # `later` has the sales of `three`, and of those with one number the first counts.
        assert sum(total for _, _, total in self.ask(folder, "money")) == sum(
            each.total_ttc for each in (one, two, later)
        )

    def test_chain(self, folder, fill):
        """A closure that continues another one than the one before it."""
        one, two, three = book(NIM)
        fill(one, two, proven(msgspec.structs.replace(three, previous_chain_head="1" * 64)))
        assert self.ask(folder, "chain") == [(NIM, "live", 3)]


class TestTheVerifier:
    """The verifier of the page, on the published vectors."""

    @pytest.fixture
    def holds(self):
        space: dict = {}
        exec(compile(program("verify.py"), "verify.py", "exec"), space)  # noqa: S102  # the page is ours
        return space["holds"]

    def test_every_vector(self, holds):
        """Each vector by an Ed25519 key holds with each key that signed it, also with two at a rotation, and no other does."""
        published = json.loads((DOCS / "vectors" / "closures.json").read_text())
        keys = {key["name"]: key["verifies"] for key in published["keys"]}
        pairs = [key for key in keys.values() if key.startswith("whpk_")]
        tried = 0
        for vector in published["good"] + published["forks"] + published["wrong"]:
            body = vector["content"].encode()
            found = {key for key in pairs if holds(key, vector["headers"], body)}
            signers = {keys[name] for name in vector["signed_by"] if keys[name] in pairs}
            if vector.get("fails") == "signature":
                assert found <= {keys["thief"]}
            else:
                assert found == signers
                tried += len(found)
        assert tried > 5

    def test_what_is_no_signature(self, holds):
        """Junk in the header is not a signature, and no error."""
        for value in ("", "v1a", "v1a,", "v1a,%%%", "v1a,AAAA", ",", "v2,x v1a,é"):
            assert not holds(
                SHOP.public, {"webhook-id": "i", "webhook-timestamp": "1", "webhook-signature": value}, b""
            )


def test_the_example_event():
    """The event shown is one by the schema, but for the fields it leaves out with an ellipsis."""
    (text,) = [text for language, text in BLOCKS if language == "json"]
    event = json.loads(text)
    event["data"] = json.loads(make_outgoing(z_number=42).body) | event["data"]
    schema = json.loads((DOCS / "closure-event.schema.json").read_text())
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(event)
