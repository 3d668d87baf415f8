"""What a shop's key and the reader's cannot do, on a nats-server as shipped, and with the JWTs of `mcfd-hq nats`."""

import asyncio
import contextlib
import json
import re

import nats.errors
import pytest
from click import ClickException
from support.ledgers.outbox import make_outgoing
from support.receivers.headquarters import NatsHeadquarters, started, until
from support.receivers.nats_server import CONFIG, NIM, OTHER, SECOND

from daemon.core.delivery import Delivered, RetryLater
from daemon.upstream.options import Options, compose, open_receiver
from headquarters.cli.main import cli
from headquarters.core.nats_accounts import ASK_SUBJECTS, READER_PUBLISHES

pytestmark = pytest.mark.long

QUIET = 0.3
"""Seconds in which a server on loopback would have said something."""
LIMITS = json.loads((CONFIG / "closures-one.json").read_text())


USERS = ["users.conf", "jwt"]


@pytest.fixture(params=USERS)
async def headquarters(tmp_path, request):
    async with started(NatsHeadquarters(tmp_path, jwt=request.param == "jwt")) as server:
        yield server


@pytest.fixture(scope="module", params=USERS)
def untouched(tmp_path_factory, request):
    """One for all who are refused whatever they ask, so that each of them finds it as it was."""
    server = NatsHeadquarters(tmp_path_factory.mktemp("untouched"), jwt=request.param == "jwt")
    try:
        asyncio.run(server.up())
        yield server
    finally:
        server.kill()


@contextlib.asynccontextmanager
async def connected(headquarters, who, **options):
    complaints = []

    async def hear(error):
        complaints.append(str(error))

    client = await headquarters.site.connect(headquarters.server.url, who, error_cb=hear, **options)
    client.complaints = complaints
    try:
        yield client
    finally:
        await client.close()


async def publish(client, subject, content=b"x", **options):
    """Answered, refused by the server, or without anybody who takes it: whatever it is, it is over when this returns."""
    with contextlib.suppress(nats.errors.Error):
        await client.publish(subject, content, **options)
        await client.flush()


async def is_refused(client, subject, content=b"") -> bool:
    """Whether the server does not let this key ask that, or there is no subscriber."""
    before = len(client.complaints)
    asking = asyncio.ensure_future(client.request(subject, content, timeout=60))
    await until(lambda: asking.done() or len(client.complaints) > before)
    if not asking.done():
        asking.cancel()
        return "permissions violation" in client.complaints[-1].lower()
    try:
        return "not enabled" in asking.result().data.decode()
    except nats.errors.NoRespondersError:
        return True


async def stream_counts(headquarters) -> dict[str, int]:
    """How many messages the stream has of each subject."""
    async with headquarters.reading() as client:
        info = await client.jetstream().stream_info("CLOSURES", subjects_filter=">")
    return info.state.subjects or {}


async def deliver(headquarters, who, *entries):
    own = {"url": headquarters.server.url, "credentials_file": who, "tls_ca": headquarters.site.authority.path}
    receiver = open_receiver("nats", Options(**own, timeout=60))
    try:
        return [
            await receiver.deliver(compose(e, "caisse"), report_id=e.report_id, subject="closure", nim=e.nim)
            for e in entries
        ]
    finally:
        await receiver.aclose()


async def test_each_shop_delivers_its_own(headquarters):
    """With the keys as shipped: both machines of the one box, the machine of the other shop, and no machine of somebody else."""
    site = headquarters.site
    assert await deliver(headquarters, site.shop, make_outgoing(NIM), make_outgoing(SECOND)) == [Delivered()] * 2
    assert await deliver(headquarters, site.other_shop, make_outgoing(OTHER)) == [Delivered()]
    (outcome,) = await deliver(headquarters, site.other_shop, make_outgoing(NIM, 2))
    assert isinstance(outcome, RetryLater)
    assert await stream_counts(headquarters) == {f"mcf.{nim}.closure": 1 for nim in (NIM, SECOND, OTHER)}


@pytest.mark.parametrize("subject", ["_INBOX.>", "_INBOX.*.*", "_INBOX.*.>", ">", "mcf.>", "$JS.>", "$SYS.>", "_R_.>"])
async def test_a_shop_hears_nothing_of_others(headquarters, subject):
    """A stolen key listens wherever closures could come by, while the reader fetches them and another shop sends one."""
    site = headquarters.site
    heard = []

    async def hear(message):
        heard.append(message)

    async with connected(headquarters, site.shop) as thief, connected(headquarters, site.reader) as reader:
        await thief.subscribe(subject, cb=hear)
        await thief.flush()
        assert await deliver(headquarters, site.other_shop, make_outgoing(OTHER)) == [Delivered()]
        (message,) = await fetch(reader, 1)
        await message.ack()
        assert json.loads(message.data)["data"]["nim"] == OTHER
        await asyncio.sleep(QUIET)
        await until(lambda: thief.complaints)
        assert "permissions violation" in thief.complaints[0].lower()
    assert heard == []


async def test_a_box_more(tmp_path):
    """With JWTs a new box delivers with a credentials file that was made while the servers run, and nothing was changed on them."""
    headquarters = NatsHeadquarters(tmp_path, jwt=True)
    await headquarters.up()
    try:
        nim, file = "EL02000031-1", tmp_path / "new.creds"
        arguments = ["nats", "box", str(headquarters.site.directory / "jwt"), nim, "--to", str(file)]
        cli.main(arguments, standalone_mode=False)
        assert file.stat().st_mode & 0o777 == 0o600
        assert await deliver(headquarters, file, make_outgoing(nim)) == [Delivered()]
        assert isinstance((await deliver(headquarters, file, make_outgoing(NIM)))[0], RetryLater)
        with pytest.raises(ClickException):  # never over a key that a box has
            cli.main(arguments, standalone_mode=False)
    finally:
        headquarters.kill()


def test_the_reader_may_the_same():
    """What users.conf permits the reader and what `mcfd-hq nats` does are one list."""
    reader = (
        (CONFIG / "users.conf").read_text().partition("PUBLIC-NKEY-OF-THE-READER")[2].partition("allow_responses")[0]
    )
    listed, _, heard = reader.partition("subscribe:")
    assert re.findall(r'"(\$JS[^"]+)"', listed) == list(READER_PUBLISHES)
    assert f'"{ASK_SUBJECTS}"' in heard


async def fetch(reader, count):
    inbox = reader._inbox_prefix.decode()
    jetstream = reader.jetstream()
    consumer = await jetstream.pull_subscribe_bind("headquarters", "CLOSURES", inbox_prefix=f"{inbox}.".encode())
    return await consumer.fetch(count, timeout=60)


@pytest.mark.parametrize(
    "subject",
    [
        f"mcf.{OTHER}.closure",
        f"mcf.{OTHER}.presence",
        f"mcf.{OTHER}.ask",
        "$JS.API.INFO",
        "$JS.API.STREAM.INFO.CLOSURES",
        "$JS.API.STREAM.MSG.GET.CLOSURES",
        "$JS.API.DIRECT.GET.CLOSURES",
        "$JS.API.CONSUMER.MSG.NEXT.CLOSURES.headquarters",
        "$JS.ACK.CLOSURES.headquarters.1.1.1.1.0",
        "$SYS.REQ.SERVER.PING",
    ],
)
async def test_a_shop_reaches_nothing_else(untouched, subject):
    """Of the streams and of other shops a shop's key reaches nothing, whatever it asks."""
    async with connected(untouched, untouched.site.shop) as thief:
        assert await is_refused(thief, subject, b'{"seq": 1}')
    assert await stream_counts(untouched) == {}


@pytest.mark.parametrize(
    "call",
    [
        "STREAM.UPDATE.CLOSURES",
        "STREAM.DELETE.CLOSURES",
        "STREAM.PURGE.CLOSURES",
        "STREAM.MSG.DELETE.CLOSURES",
        "STREAM.SNAPSHOT.CLOSURES",
        "STREAM.CREATE.OTHER",
        "CONSUMER.CREATE.CLOSURES.other",
        "CONSUMER.DELETE.CLOSURES.headquarters",
        "CONSUMER.PAUSE.CLOSURES.headquarters",
        "CONSUMER.MSG.NEXT.CLOSURES.other",
        "STREAM.DELETE.PRESENCE",
    ],
)
async def test_the_reader_only_reads(headquarters, call):
    """The reader's key, stolen, changes nothing: no update, no deletion, no consumer but its own."""
    await deliver(headquarters, headquarters.site.shop, make_outgoing(NIM))
    body = {"STREAM.UPDATE.CLOSURES": json.dumps(LIMITS | {"max_msgs": 1}).encode()}.get(call, b'{"seq": 1}')
    async with connected(headquarters, headquarters.site.reader) as thief:
        assert await is_refused(thief, f"$JS.API.{call}", body)
        assert await is_refused(thief, f"mcf.{NIM}.closure", b"forged")
        (message,) = await fetch(thief, 1)  # what it is there for
        await message.ack_sync(timeout=60)
    assert await stream_counts(headquarters) == {f"mcf.{NIM}.closure": 1}


async def test_one_shop_does_not_fill_the_stream(headquarters):
    """A stolen key publishes until the server says no: its own subject is full, and the other shop delivers as ever."""
    limit, size = LIMITS["max_msgs_per_subject"], 2_000
    async with connected(headquarters, headquarters.site.shop, pending_size=64 * 1024 * 1024) as thief:
        for number in range(limit + 500):
            await thief.publish(f"mcf.{NIM}.closure", b"%d " % number + b"x" * size)
        await thief.flush(timeout=30)
        answer = json.loads((await thief.request(f"mcf.{NIM}.closure", b"one more", timeout=30)).data)
        assert answer["error"]["err_code"] == 10077  # maximum messages per subject exceeded
        too_large = json.loads((await thief.request(f"mcf.{SECOND}.closure", b"x" * 140_000, timeout=30)).data)
        assert too_large["error"]["err_code"] == 10054  # message size exceeds maximum allowed
    assert await deliver(headquarters, headquarters.site.other_shop, make_outgoing(OTHER)) == [Delivered()]
    assert await stream_counts(headquarters) == {f"mcf.{NIM}.closure": limit, f"mcf.{OTHER}.closure": 1}
