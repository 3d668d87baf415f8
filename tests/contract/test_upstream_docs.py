"""The programs of docs/upstream.md, run as they stand there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from jsonschema import Draft202012Validator
from support.headquarters import HttpHeadquarters, Keys, until
from support.nats_server import NatsServer, NatsSite, add_stream, free_port
from support.outbox import make_outgoing

from daemon.core.delivery import Again, Delivered, Refused
from daemon.upstream.event import compose
from daemon.upstream.kinds import open_receiver
from daemon.upstream.options import Options

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "upstream.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, flags=re.DOTALL)


def program(name):
    """The Python block that begins with `# name`."""
    (found,) = [text for language, text in BLOCKS if language == "python" and text.startswith(f"# {name}\n")]
    return found


@pytest.fixture
def run(tmp_path):
    """Start a program of the page in a directory of its own; it is gone at the end."""
    started = []

    def start(name, **environment):
        (tmp_path / name).write_text(program(name))
        process = subprocess.Popen(
            [sys.executable, name], cwd=tmp_path, env={**os.environ, **environment}, stderr=subprocess.PIPE
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def rows(path):
    with contextlib.closing(sqlite3.connect(path)) as table:
        try:
            return table.execute("SELECT id, nim, z, total FROM closure ORDER BY z").fetchall()
        except sqlite3.OperationalError:  # the program has not made it yet
            return []


async def send(receiver, entry):
    return await receiver.deliver(
        compose(entry, "caisse-1"), report_id=entry.report_id, subject="closure", nim=entry.nim
    )


async def test_the_receiver(run, tmp_path):
    """The receiver of the page keeps each closure once and turns away what is not signed with its secret."""
    keys, port = Keys(tmp_path, "v1"), free_port()
    run("receiver.py", HQ_SECRET=keys.public, PORT=str(port))
    options = Options(url=f"http://127.0.0.1:{port}/closures", key_files=(keys.file,))
    receiver = open_receiver("https", options)
    entries = [make_outgoing(z_number=z) for z in (1, 2, 3)]

    async def up():
        return await send(receiver, entries[0]) == Delivered()

    await until(up)
    assert [await send(receiver, entry) for entry in entries * 2] == [Delivered()] * 6
    receiver._now = lambda: time.time() - 3600
    assert isinstance(await send(receiver, make_outgoing(z_number=4)), Again)
    await receiver.aclose()
    keys.file.write_text("whsec_" + "A" * 32)
    stranger = open_receiver("https", options)
    assert isinstance(await send(stranger, make_outgoing(z_number=4)), Refused)
    await stranger.aclose()
    assert rows(tmp_path / "closures.sqlite3") == [(e.report_id, e.nim, e.z_number, 16000) for e in entries]


async def test_the_verifier(tmp_path):
    """The verifier of the page accepts what a box signed with its private key, and nothing else."""
    space: dict = {}
    exec(compile(program("verify.py"), "verify.py", "exec"), space)  # noqa: S102  # the page is ours
    headquarters = HttpHeadquarters(tmp_path, "v1a")
    await headquarters.up()
    receiver = open_receiver("https", headquarters.options)
    assert await send(receiver, make_outgoing()) == Delivered()
    await receiver.aclose()
    await headquarters.close()
    (attempt,) = headquarters.attempts()
    headers, body = attempt["headers"], attempt["body"].encode()
    space["verify"](headquarters.keys.public, headers, body)
    with pytest.raises(InvalidSignature):
        space["verify"](headquarters.keys.public, headers, body + b" ")
    with pytest.raises(ValueError, match="timestamp"):
        space["verify"](headquarters.keys.public, headers | {"webhook-timestamp": "1"}, body)


async def test_the_table(run, tmp_path):
    """The 20 lines read the stream into a table, each closure once, and go on where they were after a kill."""
    assert len([line for line in program("table.py").splitlines()[1:] if line.strip()]) <= 20
    site = NatsSite(tmp_path / "nats")
    site.replacements |= {'include "tls.conf"\n': "", 'include "users.conf"\n': ""}
    server = NatsServer(site)
    server.url = server.url.replace("tls:", "nats:")
    await server.up()
    client = await site.connect(server.url)
    await add_stream(client, "closures-one.json")
    await client.close()
    receiver = open_receiver("nats", Options(url=server.url))
    entries = [make_outgoing(z_number=z) for z in range(1, 31)]
    table = tmp_path / "closures.sqlite3"
    try:
        for part in (entries[:20], entries):
            process = run("table.py", NATS_URL=server.url)
            assert {type(await send(receiver, entry)) for entry in part} == {Delivered}
            await until(lambda part=part: len(rows(table)) == len(part))
            process.kill()
            await asyncio.to_thread(process.wait)
    finally:
        await receiver.aclose()
        server.kill()
    assert rows(table) == [(e.report_id, e.nim, e.z_number, 16000) for e in entries]


def test_the_query_finds_gaps():
    """The query of the page names the first missing Z of each gap, per machine."""
    (query,) = [text for language, text in BLOCKS if language == "sql"]
    with contextlib.closing(sqlite3.connect(":memory:")) as table:
        table.execute("CREATE TABLE closure (nim, z INTEGER)")
        held = [("A", z) for z in (1, 2, 4, 7, 8)] + [("B", z) for z in (1, 2, 3)]
        table.executemany("INSERT INTO closure VALUES (?, ?)", held)
        assert table.execute(query).fetchall() == [("A", 3), ("A", 5)]


def test_the_example_event():
    """The event shown is one by the schema, but for the fields it leaves out with an ellipsis."""
    (text,) = [text for language, text in BLOCKS if language == "json"]
    event = json.loads(text)
    event["data"] = json.loads(make_outgoing(z_number=42).body) | event["data"]
    schema = json.loads((DOCS / "closure-event.schema.json").read_text())
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(event)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", PAGE))
def test_links(target):
    """What the page points to is there."""
    assert (DOCS / target).exists()
