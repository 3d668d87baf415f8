"""HTTPS by the box's own authority: made, exported, trusted by curl, renewed without a restart."""

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import ssl
import stat
import subprocess
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from structlog.testing import capture_logs
from support.cli.command import CONFIG, Command, audited
from support.receivers.headquarters import until
from support.shop import NIM, Shop, invoice, wait_for
from support.tools import need

from common.files import write_whole
from common.sockets import box_addresses, box_names
from daemon.app.upkeep import housekeeping
from daemon.app.upkeep.housekeeping import Certificate
from daemon.settings import load
from daemon.tls import AuthorityError, authority
from daemon.tls.authority import check_key, create, describe, read, renew, renew_if_due

pytestmark = pytest.mark.usefixtures("in_english")

NAMES = ("localhost", "caisse.lan", "127.0.0.1")
NOW = datetime(2026, 1, 15, tzinfo=UTC)
DAYS = timedelta(days=1)


# -- a shop -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A shop that is to serve its network, not yet started."""
    server = {"tls": "internal", "host": "0.0.0.0", "allowed_hosts": ["caisse.lan"]}  # noqa: S104  with TLS
    shop = Shop(tmp_path, config={"server": server})
    shop._write_config()
    return shop


def test_a_till_that_trusts_the_authority(shop: Shop, tmp_path: Path) -> None:
    """`tls init`, `export-ca`, and curl checks chain and name: certified. Without the authority, or by another name, curl refuses.
    A certificate that does not stand for the box any more is replaced while the daemon runs; tills need nothing new."""
    need("curl")
    assert "no authority" in shop.mcfd("run").stderr
    content = json.loads(shop.mcfd("tls", "init", "--json", check=True).stdout)
    ca = tmp_path / "exported.pem"
    exported = shop.mcfd("tls", "export-ca", str(ca), check=True)
    assert describe(read(ca)).fingerprint in exported.stderr
    assert {"localhost", "caisse.lan", socket.gethostname().lower(), "127.0.0.1"} <= set(content["names"])
    with shop:
        shop.http.close()
        shop.http = httpx.Client(
            base_url=f"https://127.0.0.1:{shop.port}", verify=ssl.create_default_context(cafile=ca), timeout=60
        )
        shop.start()
        receipt = json.loads(curl(shop, ca, "caisse.lan").stdout)
        assert receipt["nim"] == NIM
        # As the page's QR code leads a phone there.
        assert shop.http.get("/ui/authority.pem").content == ca.read_bytes()
        assert curl(shop, None, "caisse.lan").returncode == 60  # a peer that cannot be verified
        assert curl(shop, ca, "other.lan").returncode == 60
        before = in_use(shop)
        renew(tmp_path / "tls", ("localhost",), datetime.now(UTC))
        os.kill(shop.pid, signal.SIGHUP)
        wait_for(lambda: in_use(shop).serial_number != before.serial_number, "the renewal")
        assert (
            json.loads(shop.mcfd("tls", "show", "--json").stdout)["until"]
            > f"{datetime.now(UTC) + 390 * DAYS:%Y-%m-%d}"
        )
        assert shop.http.get("/health/ready").status_code == httpx.codes.OK


def curl(shop: Shop, ca: Path | None, name: str) -> subprocess.CompletedProcess[str]:
    """A sale by the system's own curl, under a name that leads to the box."""
    headers = [word for head in shop.headers().items() for word in ("-H", ": ".join(head))]
    body = json.dumps(invoice(f"T-{name}-{ca is None}"))
    return subprocess.run(
        ["curl", "-sS", "--resolve", f"{name}:{shop.port}:127.0.0.1", *(("--cacert", str(ca)) if ca else ()), *headers,
         "-H", "Content-Type: application/json", "-d", body, f"https://{name}:{shop.port}/v1/mcf/{NIM}/certify"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip


def in_use(shop: Shop) -> x509.Certificate:
    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", shop.port)).encode())


def test_an_authority_is_not_replaced_by_mistake(tmp_path: Path) -> None:
    """Tills trust it: only `--force` makes another. What to write into the configuration is said; keys are readable by the daemon alone."""
    mcfd = Command(tmp_path, CONFIG)
    assert mcfd.refused(1, "tls", "export-ca") == f"no authority in {tmp_path}/tls yet: mcfd tls init"
    assert 'tls = "internal" in [server]' in mcfd.ok("tls", "init")
    first = mcfd.ok("tls", "export-ca")
    assert "--force makes a new one" in mcfd.refused(1, "tls", "init")
    assert mcfd.ok("tls", "export-ca") == first
    mcfd.ok("tls", "init", "--force")
    assert mcfd.ok("tls", "export-ca") != first
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "tls").iterdir()}
    assert modes == {"ca.pem": 0o644, "ca.key": 0o600, "server.pem": 0o600}


def test_who_made_an_authority_is_in_the_audit_log(tmp_path: Path) -> None:
    """Once there is a ledger to write it to, with the fingerprint that tills compare; a refused one is no entry."""
    mcfd = Command(tmp_path, CONFIG)
    mcfd.ok("tls", "init")
    assert not mcfd.ledger.exists()
    mcfd.ok("keys", "create", "--nim", NIM)
    assert audited(mcfd, "authority.created") == []
    mcfd.refused(1, "tls", "init")
    mcfd.ok("tls", "init", "--force")
    (entry,) = audited(mcfd, "authority.created")
    assert entry["subject"] == str(tmp_path / "tls")
    assert entry["detail"] == {"fingerprint": describe(read(tmp_path / "tls/ca.pem")).fingerprint}


async def test_the_daemon_looks_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being asked: what is due is renewed and shown; trouble is logged once, and what is there goes on."""
    monkeypatch.setattr(housekeeping, "CHECK_SECONDS", 0.01)
    file = tmp_path / "mcfd.toml"
    file.write_text(f'[server]\ntls = "internal"\ntls_folder = "tls"\n{CONFIG}')
    create(tmp_path / "tls", box_names("127.0.0.1", ()), datetime.now(UTC))
    (tmp_path / "tls/server.pem").unlink()
    shows = Shows()
    with capture_logs() as logs:
        keeping = asyncio.create_task(Certificate(load(file, {})).run(shows))  # type: ignore[arg-type]  # by shape
        await until(lambda: shows.times > 0)
        (tmp_path / "tls/ca.key").write_text("nothing")
        await until(lambda: logs[-1]["event"] == "certificate.not_renewed")
        await asyncio.sleep(0.1)  # ten more looks
        keeping.cancel()
    assert [entry["event"] for entry in logs] == ["certificate.renewed", "certificate.not_renewed"]
    assert read(tmp_path / "tls/server.pem")


class Shows:
    """HAProxy, as far as certificates go."""

    times = 0

    async def renew(self, _: bytes) -> None:
        self.times += 1


# -- the authority ------------------------------------------------------------------------------------------------------------


def test_renewed_a_month_before_its_end(tmp_path: Path) -> None:
    """Not before; also when the box got another name or address; by the same root, so that tills need nothing new."""
    certificate = create(tmp_path, NAMES, NOW)
    root = read(tmp_path / "ca.pem")
    assert renew_if_due(tmp_path, NAMES, NOW + 360 * DAYS) is None
    later = renew_if_due(tmp_path, NAMES, NOW + 368 * DAYS)
    assert later.until - certificate.until == 368 * DAYS
    moved = renew_if_due(tmp_path, (*NAMES, "192.168.1.20"), NOW + 369 * DAYS)
    assert "192.168.1.20" in moved.names
    assert read(tmp_path / "ca.pem") == root
    read(tmp_path / "server.pem").verify_directly_issued_by(root)


def test_a_box_without_a_clock(tmp_path: Path) -> None:
    """In 1970 no authority is made; one that was made earlier goes on as it is, and a lost certificate is made good."""
    with pytest.raises(AuthorityError, match="timedatectl"):
        create(tmp_path, NAMES, datetime(1970, 1, 1, tzinfo=UTC))
    create(tmp_path, NAMES, NOW)
    assert renew_if_due(tmp_path, NAMES, datetime(1970, 1, 1, tzinfo=UTC)) is None
    (tmp_path / "server.pem").unlink()
    again = renew_if_due(tmp_path, NAMES, datetime(1970, 1, 1, tzinfo=UTC))
    assert again.since <= NOW < again.until


def test_a_root_that_can_stand_in_for_nobody_else(tmp_path: Path) -> None:
    """Trusted by tills, it vouches for names of the shop's network and its own, and OpenSSL refuses anything else of its making."""
    need("openssl")
    create(tmp_path, NAMES, NOW)
    root, key = authority._load(tmp_path)
    assert authority.permitted_names(root, ("till.lan", "10.1.2.3", "bank.example", "8.8.8.8")) == (
        "till.lan",
        "10.1.2.3",
    )
    server_key = authority.ec.generate_private_key(authority.ec.SECP256R1())
    for name, verdict in (("till.lan", "OK"), ("bank.example", "permitted subtree violation")):
        (tmp_path / "leaf.pem").write_bytes(authority._pem(authority._server(root, key, server_key, (name,), NOW)))
        done = subprocess.run(
            ["openssl", "verify", "-no_check_time", "-CAfile", "ca.pem", "leaf.pem"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert verdict in done.stdout + done.stderr


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    """A key of another authority, no key, no certificate, a pipe: one line that names the file. The certificate that is there goes on until it is
    due, whatever the key is."""
    create(tmp_path / "one", NAMES, NOW)
    create(tmp_path / "two", NAMES, NOW)
    (tmp_path / "one/ca.key").write_bytes((tmp_path / "two/ca.key").read_bytes())
    assert renew_if_due(tmp_path / "one", NAMES, NOW) is None
    for work in (lambda: check_key(tmp_path / "one"), lambda: renew_if_due(tmp_path / "one", NAMES, NOW + 380 * DAYS)):
        with pytest.raises(AuthorityError, match="is not the key of"):
            work()
    (tmp_path / "two/ca.key").write_text("nothing")
    with pytest.raises(AuthorityError, match="holds no private key"):
        check_key(tmp_path / "two")
    (tmp_path / "two/ca.pem").write_text("nothing")
    with pytest.raises(AuthorityError, match="holds no certificate"):
        renew_if_due(tmp_path / "two", NAMES, NOW)
    for name in ("ca.pem", "ca.key"):
        create(tmp_path / name, NAMES, NOW)
        (tmp_path / name / name).unlink()
        os.mkfifo(tmp_path / name / name)
        with pytest.raises(AuthorityError, match=f"{name} cannot be read: it is a pipe, not a file"):
            check_key(tmp_path / name)


async def test_a_start_without_the_authority_key(tmp_path: Path) -> None:
    """A key that cannot be read is a warning while the certificate is good for a year, and stops the start once there is none."""
    file = tmp_path / "mcfd.toml"
    file.write_text(f'[server]\ntls = "internal"\ntls_folder = "tls"\n{CONFIG}')
    create(tmp_path / "tls", box_names("127.0.0.1", ()), datetime.now(UTC))
    (tmp_path / "tls/ca.key").unlink()
    with capture_logs() as logs:
        await Certificate(load(file, {})).freshen_at_start()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("certificate.not_renewed", "warning")]
    (tmp_path / "tls/server.pem").unlink()
    with pytest.raises(AuthorityError, match=r"ca\.key"):
        await Certificate(load(file, {})).freshen_at_start()


@pytest.mark.parametrize("left", range(6))
def test_power_goes_while_an_authority_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """Before and after each of its files, also between key and root: they are a pair at the next start, the old one or the new."""
    create(tmp_path, NAMES, NOW)

    def step() -> None:
        nonlocal left
        if left == 0:
            raise OSError(5, "power is gone")
        left -= 1

    def until_power_goes(path: Path, content: bytes, mode: int) -> None:
        step()
        write_whole(path, content, mode)
        step()

    monkeypatch.setattr(authority, "write_whole", until_power_goes)
    with pytest.raises(AuthorityError):
        create(tmp_path, NAMES, NOW, replace=True)
    monkeypatch.undo()
    check_key(tmp_path)
    renew_if_due(tmp_path, NAMES, NOW)
    read(tmp_path / "server.pem").verify_directly_issued_by(read(tmp_path / "ca.pem"))


def test_an_authority_for_servers_only(tmp_path: Path) -> None:
    """OpenSSL takes it for TLS servers, and for nothing else: neither mail nor programs nor clients."""
    need("openssl")
    create(tmp_path, NAMES, NOW)
    for purpose, verdict in (("sslserver", 0), ("smimesign", 2), ("sslclient", 2), ("codesign", 2)):
        done = subprocess.run(
            ["openssl", "verify", "-no_check_time", "-purpose", purpose, "-CAfile", "ca.pem", "server.pem"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == verdict or (purpose == "codesign" and done.returncode), done.stdout + done.stderr
    root = read(tmp_path / "ca.pem").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [usage.dotted_string for usage in root] == ["1.3.6.1.5.5.7.3.1"]


def test_the_names_of_a_box(tmp_path: Path) -> None:
    """Its own, those that are configured, the addresses it listens on; nothing that cannot stand in a certificate."""
    names = box_names("192.168.1.20", ("Caisse.LAN.", "*", "10.0.0.9:8480"))
    assert {"localhost", "caisse.lan", "127.0.0.1", "::1", "192.168.1.20"} <= set(names)
    assert not {"*", "10.0.0.9:8480"} & set(names)
    (tmp_path / "fib_trie").write_text(
        "Main:\n  |-- 0.0.0.0\n     /0 universe UNICAST\n     |-- 192.168.1.20\n        /32 host LOCAL\n"
        "     |-- 192.168.1.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n"
    )
    (tmp_path / "if_inet6").write_text(
        "fd000000000000000000000000000002 02 40 00 80 eth0\nfe800000000000000000000000000001 02 40 20 80 eth0\n"
    )
    assert [str(address) for address in box_addresses(tmp_path)] == ["192.168.1.20", "fd00::2"]
    assert box_addresses(tmp_path / "none") == []


def test_an_authority_that_is_made_and_renewed_by_several_at_once_belongs_together(tmp_path: Path) -> None:
    """`tls init --force` by two people while the daemon renews: root, key and certificate are of one of them."""
    create(tmp_path, NAMES, NOW)
    for _ in range(5):
        with ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as processes:
            futures = [processes.submit(create, tmp_path, NAMES, NOW, replace=True) for _ in range(12)]
            futures += [processes.submit(renew_if_due, tmp_path, (*NAMES, f"{n}.lan"), NOW) for n in range(4)]
        for each in futures:
            each.result()
        check_key(tmp_path)
        read(tmp_path / "server.pem").verify_directly_issued_by(read(tmp_path / "ca.pem"))
    assert not [*tmp_path.glob(".*")]
