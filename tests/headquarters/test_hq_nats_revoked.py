"""A box's stolen NATS credentials are revoked with what is shipped: the thief is cut off for good, everybody else goes on."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, OTHER, NatsServer, NatsSite
from support.receivers.raw_nats import raw_client

from common.wire.errors import NatsError
from common.wire.keys import read_credentials
from headquarters.cli.main import cli
from headquarters.intake.stream import stream_info


def run(*arguments: str):
    return CliRunner().invoke(cli, ["nats", *map(str, arguments)])


class Jwts:
    """As `mcfd-hq nats` makes the keys."""

    def __init__(self, directory: Path) -> None:
        self.site = NatsSite(directory / "nats", jwt=True)
        issued_at = int(time.time())
        while int(time.time()) == issued_at:  # in the same second the operator's line would be the same by chance
            time.sleep(0.01)
        self.server = NatsServer(self.site)
        self.users = self.site.directory / "hq-1" / "users.conf"

    def revoke(self, *files: Path) -> None:
        folder = self.site.directory / "jwt"
        done = run("revoke", folder, *(read_credentials(file, "nats").public for file in files))
        assert done.exit_code == 0, done.output
        shutil.copy(folder / "users.conf", self.users)


class Written(Jwts):
    """As they are written into users.conf by hand."""

    def __init__(self, directory: Path) -> None:
        self.site = NatsSite(directory / "nats")
        self.server = NatsServer(self.site)
        self.users = self.site.directory / "hq-1" / "users.conf"

    def revoke(self, *files: Path) -> None:
        for file in files:
            entry = rf"      \{{\n        nkey: \"{read_credentials(file, 'nats').public}\".*?\n      \}}\n"
            text, count = re.subn(entry, "", self.users.read_text(), flags=re.DOTALL)
            assert count == 1
            self.users.write_text(text)


@pytest.fixture(params=[Jwts, Written])
async def place(request, tmp_path):
    place = request.param(tmp_path)
    await place.server.up("closures-one.json")
    yield place
    place.server.kill()


async def test_a_stolen_key(place):
    """What was said by it before stays; the other shop and headquarters do not notice."""
    site, server = place.site, place.server

    async def come_in(file):
        return await raw_client(server.url, file, site.authority.path)

    thief, other, reader = [await come_in(file) for file in (site.shop, site.other_shop, site.reader)]
    await thief.request(f"mcf.{NIM}.closure", b"1", 60)
    place.revoke(site.shop)
    os.kill(server.pid, signal.SIGHUP)  # nats-server --signal reload
    await until(lambda: thief.is_closed)
    with pytest.raises(NatsError):
        await come_in(site.shop)
    await other.request(f"mcf.{OTHER}.closure", b"2", 60)
    assert (await stream_info(reader, "CLOSURES")).last_seq == 2
    server.kill()
    await server.up()
    with pytest.raises(NatsError):
        await come_in(site.shop)
    again = await come_in(site.other_shop)
    for client in (thief, other, reader, again):
        await client.close()


async def test_one_after_the_other(tmp_path):
    """A second one is revoked weeks later: the first one stays out. A box gets new credentials, and is in again."""
    place = Jwts(tmp_path)
    site, server = place.site, place.server
    place.revoke(site.shop)
    place.revoke(site.other_shop)
    fresh = tmp_path / "fresh.creds"
    assert run("box", site.directory / "jwt", NIM, "--to", fresh).exit_code == 0
    await server.up()
    for file in (site.shop, site.other_shop):
        with pytest.raises(NatsError):
            await raw_client(server.url, file, site.authority.path)
    client = await raw_client(server.url, fresh, site.authority.path)
    await client.close()
    server.kill()


@pytest.fixture
def folder(tmp_path):
    """Keys as `mcfd-hq nats init` makes them."""
    assert run("init", tmp_path / "keys").exit_code == 0
    return tmp_path / "keys"


def test_by_its_nim(folder, tmp_path):
    """All credentials of that box, and of no other: revoking a lost one needs no key."""
    rows = [
        run("box", folder, *nims, "--to", tmp_path / f"{n}.creds").output.strip()
        for n, nims in enumerate([(NIM, "EL02000016-1"), (OTHER,), (NIM,)])
    ]
    done = run("revoke", folder, NIM)
    assert done.output.split() == sorted([rows[0], rows[2]])
    assert json.loads((folder / "revoked.json").read_text()) == sorted([rows[0], rows[2]])


async def test_headquarters_own_credentials(tmp_path):
    """Stolen too: new ones are made, the old ones go."""
    place = Jwts(tmp_path)
    new = tmp_path / "new.creds"
    output = run("reader", place.site.directory / "jwt", "--to", new)
    assert output.output.strip() == read_credentials(new, "nats").public
    place.revoke(place.site.reader)
    await place.server.up()
    with pytest.raises(NatsError):
        await raw_client(place.server.url, place.site.reader, place.site.authority.path)
    client = await raw_client(place.server.url, new, place.site.authority.path)
    await client.close()
    place.server.kill()


@pytest.mark.parametrize("name", ["", "EL02000099-1", "U", "UABC", "u" * 56])
def test_what_is_no_key(folder, name):
    """It is refused, and no file is touched."""
    before = (folder / "users.conf").read_bytes()
    assert run("revoke", folder, name).exit_code == 2
    assert (folder / "users.conf").read_bytes() == before
    assert not (folder / "revoked.json").exists()


@pytest.mark.parametrize("conf", [None, "", "operator: a.b.c\n", "operator: x\n", "\u00e9"])
def test_another_file_than_the_servers(folder, conf):
    """Servers do not reload what is not of their operator: it is refused, and what was revoked before stays as it was."""
    public = read_credentials(folder / "reader.creds", "nats").public
    (folder / "users.conf").unlink()
    if conf is not None:
        (folder / "users.conf").write_text(conf)
    assert run("revoke", folder, public).exit_code == 2
    assert not (folder / "revoked.json").exists()


def test_the_list_of_before_is_damaged(folder):
    """It admits no revoked box again."""
    public = read_credentials(folder / "reader.creds", "nats").public
    (folder / "revoked.json").write_text("[")
    assert run("revoke", folder, public).exit_code == 2
    (folder / "revoked.json").unlink()
    assert run("revoke", folder, public).exit_code == 0
    assert json.loads((folder / "revoked.json").read_text()) == [public]
    assert {oct(file.stat().st_mode & 0o777) for file in folder.iterdir()} == {"0o600"}
