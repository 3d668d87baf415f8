import json

import pytest
from support.cli.command import CONFIG, NIM, Command, audited
from support.ledgers.ledger import Till, opened_till, tamper
from support.receivers.hooks import Receiver

from daemon.store.tables.book.books import open_book
from daemon.upstream.options import PrivateKey, read_keys

UPSTREAM = '[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "s"\n'


@pytest.fixture
async def mcfd(tmp_path):
    """Three closures on their way: the first sent, the second parked, the third waiting."""
    command = Command(tmp_path, CONFIG + UPSTREAM)
    async with opened_till(command.ledger) as (store, till):
        for _ in range(3):
            await till.close()
        first, second, third = await store.outbox.waiting(NIM, "live", 10)
        await store.outbox.mark_sent(first.id, at=till.at)
        await store.outbox.park(second.id, "HTTP 400", at=till.at)
        await store.outbox.mark_failed(third.id, "HTTP 503", at=till.at + 1000, next_at=0)
        test = await store.ledger.write(open_book, NIM, "test")
        await Till(store, test).close()
    return command


def test_what_waits_and_what_is_parked(mcfd):
    """Figures of each machine; the sandbox only with `include_sandbox`; without an upstream all the same, with a note."""
    content = mcfd.json("upstream", "status")
    (machine,) = content["machines"]
    assert content["kind"] == "https"
    assert (machine["nim"], machine["mode"], machine["waiting"], machine["parked"]) == (NIM, "live", 1, 1)
    assert machine["last_error"] == "HTTP 503"
    assert machine["oldest_at"].endswith("Z")
    assert machine["last_sent_at"].endswith("Z")
    assert machine["oldest_age_seconds"] > 0
    assert "HTTP 503" in mcfd.ok("upstream", "status")
    mcfd.config.write_text(mcfd.config.read_text() + "include_sandbox = true\n")
    sandbox = mcfd.json("upstream", "status")["machines"]
    assert [(each["mode"], each["waiting"]) for each in sandbox] == [("live", 1), ("test", 1)]
    mcfd.config.write_text(CONFIG + '[[machine]]\nnim = "EL02000016-1"\nport = "x"\n')
    done, content = mcfd.run("upstream", "status"), mcfd.json("upstream", "status")
    assert (done.returncode, "closures stay in the ledger" in done.stderr) == (0, True)
    assert (content["kind"], [each["waiting"] for each in content["machines"]]) == (None, [1, 0])


def test_parked_ones_again(mcfd):
    """Without a number only what was parked waits again; with one, everything from there on. A machine that there is not is named."""
    assert mcfd.json("upstream", "replay") == {"replayed": 1}
    assert mcfd.json("upstream", "status")["machines"][0]["waiting"] == 2
    done = mcfd.run("upstream", "replay", "--nim", "EL02000099-1", "--from", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"mcfd: EL02000099-1 is not in the configuration; there is {NIM}\n"
    assert mcfd.ok("upstream", "replay", "--nim", NIM, "--from", "1") == "1 closure to be sent again\n"
    assert mcfd.json("upstream", "status")["machines"][0]["waiting"] == 3
    assert [(entry["subject"], entry["detail"]) for entry in audited(mcfd, "outbox.replayed")] == [
        ("upstream", {"count": "1"}),
        ("upstream", {"count": "1", "nim": NIM, "from_z": "1"}),
    ]


async def test_a_machine_that_was_activated_again_has_one_queue(mcfd):
    """By its name in the configuration, its present one or the short one (decision 26); none is listed beside it that has nothing to send."""
    tamper(mcfd.ledger, "UPDATE book SET nim = 'EL02000015-2' WHERE mode = 'live'")
    assert [each["nim"] for each in mcfd.json("upstream", "status")["machines"]] == ["EL02000015-2"]
    for nim, again in ((NIM, 1), ("EL02000015-2", 0), ("EL02000015", 0)):
        assert mcfd.json("upstream", "replay", "--nim", nim) == {"replayed": again}
    for nim, again in ((NIM, 1), ("EL02000015-2", 0)):
        assert mcfd.json("upstream", "replay", "--nim", nim, "--from", "1") == {"replayed": again}


HOOK = '[[webhook]]\nurl = "https://till.example/x"\nsecret_file = "s"\nname = "till"\n'


async def test_a_webhook_s_queue_is_one_like_the_others(mcfd):
    """Its figures stand beside those of the way upstream, and what is parked in it is sent again by its name."""
    mcfd.config.write_text(mcfd.config.read_text() + HOOK)
    async with opened_till(mcfd.ledger, destinations={"till": frozenset({"cert.issued"})}) as (store, till):
        await till.sell()
        (event,) = await store.outbox_for("till").waiting_events(till.book, 10)
        await store.outbox_for("till").park(event.id, "answered 422 what is this", at=till.at)

    def hook():
        (machine,) = mcfd.json("upstream", "status")["webhooks"]["till"]
        return machine["waiting"], machine["parked"]

    assert hook() == (0, 1)
    assert "answered 422 what is this" in mcfd.ok("upstream", "status")
    assert mcfd.ok("upstream", "replay", "--to", "till") == "1 event to be sent again\n"
    assert hook() == (1, 0)
    assert mcfd.json("upstream", "status")["machines"][0]["parked"] == 1  # another lane's
    done = mcfd.run("upstream", "replay", "--to", "tell")
    assert done.returncode != 0
    assert "there is: till" in done.stderr


def test_a_key_of_our_own(mcfd):
    """The public key alone on stdout, the private one in a file for its owner only, which is never replaced."""
    file = mcfd.folder / "upstream.key"
    done = mcfd.run("upstream", "keygen", str(file))
    (key,) = read_keys([file])
    assert isinstance(key, PrivateKey)
    assert done.stdout == key.public + "\n"
    assert f'key_file = "{file}"' in done.stderr
    assert file.read_text().strip() not in done.stdout + done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert mcfd.refused(1, "upstream", "keygen", str(file)) == f"{file} exists already"
    assert "cannot be written" in mcfd.refused(1, "upstream", "keygen", str(mcfd.folder / "none" / "key"))


@pytest.fixture
async def receiver(tmp_path):
    found = Receiver(tmp_path)
    await found.up()
    yield found
    found.kill()


async def test_the_way_upstream_is_tried_before_the_first_z(tmp_path, receiver):
    """One signed message that says nothing; exit 1 with what was answered when it is not taken, or nobody is there."""
    mcfd = Command(tmp_path, CONFIG + receiver.section().replace("[[webhook]]", '[upstream]\nkind = "https"'))
    assert "has taken the test message" in mcfd.ok("upstream", "test")
    (event,) = await receiver.events()
    assert (event["type"], event["data"]["nim"]) == ("bf.mcfd.test.v1", NIM)
    await receiver.script({"status": 401})
    assert "401" in mcfd.refused(1, "upstream", "test")
    receiver.kill()
    (content,) = json.loads(mcfd.run("upstream", "test", "--json").stdout)
    assert content["ok"] is False
    assert content["error"]


async def test_a_webhook_is_tried(tmp_path, receiver):
    """An event `webhook.test`, signed as every other; an unknown name is refused, with a list of the names."""
    mcfd = Command(tmp_path, CONFIG + receiver.section(name="erp"))
    assert "has taken the test message" in mcfd.ok("webhook", "test", "erp")
    assert [event["type"] for event in await receiver.events()] == ["webhook.test"]
    assert "erp" in mcfd.refused(1, "webhook", "test", "other")
