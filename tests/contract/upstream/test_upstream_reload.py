"""Senders that are brought into force while the box is in trouble: nothing is lost, and no closure is left without one."""

import contextlib
import json
import resource

import msgspec
import pytest
from structlog.testing import capture_logs
from support.ledgers.ledger import Till
from support.receivers.headquarters import HttpHeadquarters, started, until

from daemon.app.outward.webhooks import Webhooks
from daemon.app.reload import ReloadedPart, Reloader
from daemon.app.runtime import build
from daemon.core.errors import StorageFull
from daemon.settings import load
from daemon.usecases.delivery import replicate

NIM = "EL02000015-1"


@pytest.fixture
async def receiver(tmp_path):
    async with started(HttpHeadquarters(tmp_path)) as server:
        yield server


@pytest.fixture
def settings(tmp_path, receiver):
    file = tmp_path / "mcfd.toml"
    file.write_text(
        f'[storage]\npath = "{tmp_path / "ledger.sqlite3"}"\nreserve_mb = 1\n\n'
        f'[[machine]]\nnim = "{NIM}"\nport = "/dev/none"\nenabled = false\n\n'
        f'[[webhook]]\nurl = "{receiver.url}"\nname = "till"\nsecret_file = "{receiver.keys.file}"\n'
        'retry_max = 1.0\nevents = ["cert.issued"]\n'
    )
    return load(file, {})


@contextlib.contextmanager
def no_room():
    """No file of this process may grow: what a full disk is to it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_reload_on_a_full_disk(settings, receiver):
    """The webhook still has a sender, the log names what failed, and with room again what waited arrives under its new name."""
    renamed = msgspec.structs.replace(settings.webhook[0], name="other")
    async with build(settings) as runtime:
        webhooks = Webhooks(runtime.store)
        await webhooks.prepare(settings)()
        till = await Till.of(runtime.store, NIM)
        receiver.kill()
        await till.sell()
        try:
            with capture_logs() as logs, no_room():
                with pytest.raises(StorageFull):
                    await till.sell()
                with pytest.raises(StorageFull):
                    await webhooks.prepare(msgspec.structs.replace(settings, webhook=(renamed,)))()
            assert "webhook.not_resettled" in [line["event"] for line in logs]
            assert webhooks.destinations == ("other",)
            await receiver.up()
            await webhooks.prepare(msgspec.structs.replace(settings, webhook=(renamed,)))()
            await until(lambda: [a for a in receiver.attempts() if a["kept"]])
        finally:
            await webhooks.stop()
    (attempt,) = [a for a in receiver.attempts() if a["kept"]]
    assert json.loads(attempt["body"])["type"] == "cert.issued"


async def test_a_webhook_that_wants_a_receipt(settings, receiver, monkeypatch):
    """A login page that answers 200 is no delivery: the event is sent again until the answer proves that it was read."""
    monkeypatch.setattr(replicate, "BOOKKEEPING", 0.1)  # nothing of this test rings when the first sale makes a book
    wants = msgspec.structs.replace(settings.webhook[0], receipt=True)
    async with build(settings) as runtime:
        webhooks = Webhooks(runtime.store)
        await receiver.script({"body": "<html>Log in</html>"}, {"receipt": True})
        await webhooks.prepare(msgspec.structs.replace(settings, webhook=(wants,)))()
        try:
            await (await Till.of(runtime.store, NIM)).sell()

            async def sent():
                backlog = await runtime.store.outbox_for("till").backlog()
                return backlog and backlog[0].waiting == 0 and backlog[0].parked == 0

            await until(sent, deadline=60)
        finally:
            await webhooks.stop()
    assert [(a["status"], a["kept"]) for a in receiver.attempts()] == [(200, True), (200, False)]
    assert receiver.attempts()[0]["id"] == receiver.attempts()[1]["id"]


async def test_one_part_that_fails_stops_no_other(settings):
    """Of three parts the second fails: the others are in force, and it is tried again though the file is as it was."""
    done = []
    failing = [StorageFull("the disk is full")]

    def part(name):
        async def into_force():
            if name == "second" and failing:
                raise failing.pop()
            done.append(name)

        return ReloadedPart(lambda _: into_force, ("webhook",))

    parts = [part(name) for name in ("first", "second", "third")]
    reloader = Reloader(settings, parts)
    settings.file.write_text(settings.file.read_text().replace("retry_max = 1.0", "retry_max = 2.0"))
    with capture_logs() as logs:
        await reloader.reload()
        assert reloader.is_unfinished
        await reloader.finish()
    assert done == ["first", "third", "second"]
    assert not reloader.is_unfinished
    rows = [line["event"] for line in logs]
    assert rows.count("reload.put_off") == rows.count("reload.finished") == 1
