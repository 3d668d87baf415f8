"""What box and headquarters offer by TLS."""

from __future__ import annotations

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from daemon.api.http import server as box
from headquarters.app import server as headquarters
from headquarters.app.settings import HqServer


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with key and certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "box")])
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + dt.timedelta(days=9999))
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    kind = serialization.PrivateFormat.PKCS8
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
        + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture(params=["box", "headquarters"])
def server(request, certificate):
    if request.param == "box":
        return box._tls(certificate, certificate)
    return headquarters._tls(HqServer(tls_cert=certificate, tls_key=certificate))


def agreed(server, ciphers, newest):
    """The suite that both take; ssl.SSLError when there is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = newest
    context.set_ciphers(ciphers)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server)
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return client.cipher()[0]


@pytest.mark.parametrize("ciphers", ["ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-CCM"])
def test_no_other_suite(server, ciphers):
    """Not one of CBC, whatever a client wishes."""
    with pytest.raises(ssl.SSLError):
        agreed(server, ciphers, ssl.TLSVersion.TLSv1_2)


def test_what_tills_have(server):
    """TLS 1.2 with forward secrecy, and TLS 1.3."""
    suite = "ECDHE-ECDSA-AES128-GCM-SHA256"
    assert agreed(server, f"{suite}:ECDHE-ECDSA-AES128-SHA256", ssl.TLSVersion.TLSv1_2) == suite
    assert agreed(server, "DEFAULT", ssl.TLSVersion.TLSv1_3).startswith("TLS_")
