"""How a box comes in at a NATS server: certificates, credentials, what configurations say; real servers, real keys."""

import asyncio
import base64
import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats_sending import changed, send, write_key
from support.ports import free_port
from support.receivers.authority import Authority
from support.receivers.headquarters import until
from support.receivers.nats_server import CONFIG, binary

from common.wire.keys import encode_nkey, encode_seed
from daemon.core.delivery import RetryLater
from daemon.upstream.options import Options


@pytest.fixture
def key(tmp_path):
    return write_key(tmp_path)


class TestEncryption:
    """Certificates are checked, and nothing is said in the clear beyond loopback."""

    async def test_unknown_authority(self, nats, tmp_path):
        """A certificate of somebody else's authority is not accepted."""
        stranger = Authority(tmp_path, "stranger")
        (outcome,) = await send(changed(nats.options, tls_ca=stranger.path))
        assert isinstance(outcome, RetryLater)
        assert "certificate" in outcome.error.lower()

    async def test_a_server_without_tls(self, key):
        """tls:// to a server that says it does not encrypt: nothing is sent, no name, no key."""
        content = bytearray()

        async def pretend(reader, writer):
            writer.write(b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576,"auth_required":true}\r\n')
            content.extend(await reader.read(4096))
            writer.close()

        server = await asyncio.start_server(pretend, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        (outcome,) = await send(Options(url=f"tls://127.0.0.1:{port}", key_files=key, timeout=60.0))
        assert outcome == RetryLater("the server does not encrypt")
        assert bytes(content) == b""
        server.close()


class TestCredentials:
    """A `.creds` file as `nsc` writes it, against a server in operator mode."""

    @pytest.fixture
    async def server(self, tmp_path):
        keys = {who: Ed25519PrivateKey.generate() for who in ("operator", "account", "user")}
        ids = {who: nkey(prefix, keys[who]) for who, prefix in (("operator", 14), ("account", 0), ("user", 20))}
        limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}
        limits |= {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "wildcards": True}
        operator = jwt(keys["operator"], ids["operator"], ids["operator"], "operator", {})
        account = jwt(keys["operator"], ids["operator"], ids["account"], "account", {"limits": limits})
        user = jwt(keys["account"], ids["account"], ids["user"], "user", {"subs": -1, "data": -1, "payload": -1})
        creds = tmp_path / "shop.creds"
        seed = encode_seed(keys["user"].private_bytes_raw())
        creds.write_text(
            f"-----BEGIN NATS USER JWT-----\n{user}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
        port = free_port()
        conf = tmp_path / "operator.conf"
        conf.write_text(
            f'listen: "127.0.0.1:{port}"\noperator: {operator}\nresolver: MEMORY\n'
            f"resolver_preload: {{ {ids['account']}: {account} }}\n"
        )
        process = await asyncio.create_subprocess_exec(binary(), "-c", str(conf), stderr=asyncio.subprocess.DEVNULL)
        yield Options(url=f"nats://127.0.0.1:{port}", credentials_file=creds, timeout=2.0)
        process.kill()
        await process.wait()

    async def test_accepted(self, server):
        """The user's JWT, proved by its seed, opens the connection."""
        outcomes = []

        async def connected():
            outcomes.extend(await send(server))
            return isinstance(outcomes[-1], RetryLater) and "no stream" in outcomes[-1].error

        await until(connected)

    async def test_of_somebody_else(self, server, tmp_path):
        """A JWT proved by another key is refused, in the server's words."""
        creds = tmp_path / "stolen.creds"
        seed = encode_seed(Ed25519PrivateKey.generate().private_bytes_raw())
        jwt_block = server.credentials_file.read_text().split("\n\n")[0]
        creds.write_text(f"{jwt_block}\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n")
        errors = []

        async def refused():
            errors.extend(await send(changed(server, credentials_file=creds)))
            return "authorization violation" in errors[-1].error.lower()

        await until(refused)


async def test_configurations_are_read(tmp_path):
    """The server accepts the files of config/nats as such, and refuses to start while placeholders stand for keys."""
    assert "sync_interval: always" in (CONFIG / "jetstream.conf").read_text()
    for conf in ("one.conf", "three.conf"):
        process = await asyncio.create_subprocess_exec(
            binary(), "-t", "-c", str(CONFIG / conf), env={"HQ_NAME": "hq-1"}, stderr=asyncio.subprocess.PIPE
        )
        _, complaint = await process.communicate()
        assert process.returncode == 1
        assert b"Not a valid public nkey" in complaint, complaint


def nkey(prefix: int, key: Ed25519PrivateKey) -> str:
    return encode_nkey(bytes([prefix << 3]), key.public_key().public_bytes_raw())


def jwt(signer: Ed25519PrivateKey, issuer: str, subject: str, kind: str, claims: dict) -> str:
    """A NATS JWT, version 2 (`ed25519-nkey`)."""
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    body = {"jti": subject, "iat": int(time.time()), "iss": issuer, "sub": subject, "name": kind}
    body["nats"] = {"type": kind, "version": 2, **claims}
    content = ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in (head, body))
    signature = base64.urlsafe_b64encode(signer.sign(content.encode())).rstrip(b"=").decode()
    return f"{content}.{signature}"
