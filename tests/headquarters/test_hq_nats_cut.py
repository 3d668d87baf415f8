"""On a real nats-server a revoked box of headquarters' accounts is cut off for good; everybody else stays connected."""

import asyncio

import pytest
from support.hq.nats_site import STREAMS
from support.hq.running import RunningHq
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, OTHER, SECOND, NatsServer, NatsSite
from support.receivers.raw_nats import RawClient, raw_client
from support.shop import Machine, Shop, section, wait_for

from common.wire.errors import NatsError
from headquarters.core.nats_accounts import user_of

pytestmark = pytest.mark.long


class JoinSite:
    """headquarters, a nats-server and boxes of `mcfd upstream join`."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.site = NatsSite(folder / "nats", jwt=True, issuer=True)
        self.server = NatsServer(self.site)
        own = self.server.options(self.site.reader)
        text = section("[nats]", {**own, "issuer_file": str(self.site.issuer)})
        text += section("[boxes]", {"tls_ca": own["tls_ca"]})
        self.hq = RunningHq(folder / "hq", f"sqlite:///{folder}/hq.sqlite3", text)
        self.shops: list[Shop] = []
        self.clients: list[RawClient] = []

    async def up(self) -> None:
        await self.server.up(*STREAMS)
        self.hq.start()

    def shop(self, name: str, *nims: str) -> Shop:
        """One that has joined; its daemon does not run."""
        folder = self.folder / name
        folder.mkdir()
        shop = Shop(folder, machines=tuple(Machine(folder, nim) for nim in nims))
        shop._write_config()
        self.shops.append(shop)
        self.join(shop, self.hq.cli("boxes", "code", *nims, "--label", name))
        return shop

    def join(self, shop: Shop, code: str) -> None:
        done = shop.mcfd("upstream", "join", code, "--url", self.hq.base)
        assert done.returncode == 0, done.stderr

    async def connected(self, shop: Shop):
        return await self.come_in(shop.folder / "headquarters" / "box.creds")

    async def come_in(self, credentials):
        client = await raw_client(self.server.url, credentials, self.site.authority.path)
        self.clients.append(client)
        return client

    async def down(self) -> None:
        for client in self.clients:
            await client.close()
        for shop in self.shops:
            shop.__exit__(None, None, None)
        self.hq.kill()
        self.server.kill()


@pytest.fixture
async def place(tmp_path):
    place = JoinSite(tmp_path)
    await place.up()
    yield place
    await place.down()


async def is_cut(client) -> None:
    await until(lambda: client.is_closed)


async def test_a_revoked_box_is_cut_off(place):
    """By the command, and after the server's restart; others do not notice, and a new code lets it in by another key."""
    shop, other = place.shop("Ouaga", NIM, SECOND), place.shop("Bobo", OTHER)
    thief, quiet = await place.connected(shop), await place.connected(other)
    for nim in (NIM, SECOND):
        await thief.request(f"mcf.{nim}.closure", b"1", 60)
    (before,) = place.hq.cli("boxes", "revoke", NIM).split()
    await is_cut(thief)
    with pytest.raises(NatsError):
        await place.connected(shop)
    await quiet.request(f"mcf.{OTHER}.closure", b"2", 60)
    place.server.kill()
    await place.server.up()
    with pytest.raises(NatsError):
        await place.connected(shop)
    await place.connected(other)
    place.join(shop, place.hq.cli("boxes", "code", NIM, SECOND))
    again = await place.connected(shop)
    await again.request(f"mcf.{SECOND}.closure", b"3", 60)
    listed = place.hq.cli("boxes", "list")
    assert before not in listed
    assert place.hq.cli("boxes", "revoke", SECOND).strip() in listed
    await is_cut(again)


async def test_revoked_while_headquarters_or_the_servers_are_down(place):
    """It is cut off as soon as both are there again."""
    shop = place.shop("Ouaga", NIM)
    place.hq.stop()
    place.hq.cli("boxes", "revoke", NIM)
    await place.connected(shop)
    place.server.kill()
    place.hq.start()
    await place.server.up()
    await asyncio.to_thread(wait_for, lambda: '"revoked":1' in place.hq.log, "the update")
    with pytest.raises(NatsError):
        await place.connected(shop)


async def test_a_box_whose_machine_went_to_another(place):
    """It may not speak for that machine any more: it is cut off, and joins anew for the ones that it has."""
    first = place.shop("Ouaga", NIM, SECOND)
    client = await place.connected(first)
    second = place.shop("Bobo", NIM)
    await is_cut(client)
    await place.connected(second)


async def test_only_its_own_subjects(place):
    """What a box may do is in the account of the servers: its own machines, and nothing else."""
    shop = place.shop("Ouaga", NIM)
    client = await place.connected(shop)
    for subject in (f"mcf.{OTHER}.closure", "$SYS.REQ.CLAIMS.UPDATE", "$JS.API.STREAM.INFO.CLOSURES"):
        with pytest.raises(NatsError):
            await client.request(subject, b"x", 0.5)


async def test_what_was_revoked_by_hand_stays(place):
    """Credentials that `mcfd-hq nats box` has made, and `mcfd-hq nats revoke` has taken back, stay out when headquarters updates the account."""
    with pytest.raises(NatsError):
        await place.come_in(place.site.shop)
    shop = place.shop("Bobo", OTHER)
    client = await place.connected(shop)
    place.hq.cli("boxes", "revoke", OTHER)
    await is_cut(client)
    with pytest.raises(NatsError):
        await place.come_in(place.site.shop)
    await place.come_in(place.site.other_shop)


def test_what_is_a_user():
    """Both ways in which headquarters holds a public key; a shared secret is none."""
    assert user_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") == ""
    assert user_of("whpk_" + "A" * 43 + "=").startswith("U")
    assert user_of("UABC") == "UABC"
