"""A certificate authority for one test, and certificates of it."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from daemon.tls.authority import certificate_builder, key_usage

DAY = timedelta(days=1)


class Authority:
    def __init__(self, directory: Path, name: str = "mcfd test authority") -> None:
        self._directory = directory
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = self._builder(self._name, self._key, now + DAY)
        certificate = _with_rights(builder, signs=True).sign(self._key, hashes.SHA256())
        self.path = directory / f"{name.replace(' ', '-')}.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, host: str = "127.0.0.1", *, expired: bool = False) -> Path:
        """One PEM file: certificate, then key."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        alternative = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        builder = self._builder(subject, key, now - DAY if expired else now + DAY)
        builder = builder.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        certificate = _with_rights(builder, signs=False).sign(self._key, hashes.SHA256())
        path = self._directory / f"{host}{'-expired' if expired else ''}.pem"
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return path

    def _builder(self, subject, key, until):
        builder = certificate_builder(subject, self._name, key.public_key(), self._key.public_key())
        return builder.not_valid_before(until - 3 * DAY).not_valid_after(until)


def _with_rights(builder: x509.CertificateBuilder, *, signs: bool) -> x509.CertificateBuilder:
    """Those of an authority, which signs, or of a server."""
    authority = x509.BasicConstraints(ca=signs, path_length=0 if signs else None)
    return builder.add_extension(authority, critical=True).add_extension(key_usage(signs=signs), critical=True)
