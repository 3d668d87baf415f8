"""The authority of one box: a root certificate of its own, and the certificate that it shows to tills.

    ca.pem      the root, for tills to trust (`mcfd tls export-ca`)
    ca.key      its private key, mode 0600
    server.pem  what the daemon shows: certificate and private key in one file, mode 0600, so that both change at once

The root can only vouch for TLS servers (extended key usage) with names and addresses of a shop's own network (a critical name
constraint, RFC 5280 4.2.1.10): who steals it cannot stand in for a bank at the tills that trust it, nor sign mail or programs.
"""

import fcntl
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from common.files import read_file, sync_path, write_whole
from common.language import tr
from common.language.system import reason
from common.sockets import address_of
from daemon.settings.check import AUTHORITY
from daemon.tls import AUTHORITY_KEY, NOT_VALID, SERVER_PAIR, AuthorityError

NEXT = "ca.pem.next"
ROOT_LASTS = timedelta(days=20 * 365)
SERVER_LASTS = timedelta(days=397)
"""What every browser and phone of today accepts."""
RENEWED_BEFORE = timedelta(days=30)
DAY = timedelta(days=1)
YOUNGEST_CLOCK = datetime(2025, 1, 1, tzinfo=UTC)
"""A clock before this one is wrong."""

OWN_SUFFIXES = ("localhost", "local", "lan", "home.arpa", "internal")
OWN_NETWORKS = (
    *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"),
    *("::1/128", "fc00::/7", "fe80::/10"),
)


class CertificateInfo(msgspec.Struct, frozen=True):
    """What a certificate says. `names` are host names and addresses, as text."""

    names: tuple[str, ...]
    since: datetime
    until: datetime
    fingerprint: str
    """SHA-256, in the form of `openssl x509 -fingerprint`."""


def create(folder: Path, names: Sequence[str], now: datetime, *, replace: bool = False) -> CertificateInfo:
    """Makes the authority and its first certificate; root does it as the owner of the folder (`daemon.owner`)."""
    if now < YOUNGEST_CLOCK:
        raise AuthorityError(
            tr("the clock of this box says {now}: set it first (timedatectl set-time)", now=f"{now:%Y-%m-%d}")
        )
    key = ec.generate_private_key(ec.SECP256R1())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        with _locked(folder):
            if (folder / AUTHORITY).exists() and not replace:
                raise AuthorityError(
                    tr(
                        "there is an authority in {folder} already, and tills may trust it; --force makes a new one",
                        folder=folder,
                    )
                )
            # The old pair counts until the new key is in place, the new one from then on, wherever power goes (`_finish`).
            write_whole(folder / NEXT, _pem(_root(key, names, now)), 0o644)
            write_whole(folder / AUTHORITY_KEY, _private(key), 0o600)
            (folder / NEXT).replace(folder / AUTHORITY)
            sync_path(folder)
            return renew(folder, names, now)
    except OSError as error:
        raise AuthorityError(tr("{path} cannot be written: {why}", path=folder, why=reason(error))) from error


def take_over(source: Path, folder: Path) -> None:
    """What was made in `source` becomes the authority of `folder`. The root comes last: without it none of the rest
    counts. OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    with _locked(folder):
        for name, mode in ((AUTHORITY_KEY, 0o600), (SERVER_PAIR, 0o600), (AUTHORITY, 0o644)):
            write_whole(folder / name, (source / name).read_bytes(), mode)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Waits until no other process writes the authority: its files belong together. Without a lock if there is no
    folder."""
    with ExitStack() as stack:
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def renew(folder: Path, names: Sequence[str], now: datetime) -> CertificateInfo:
    """A new certificate for those of `names` that the root may vouch for; OSError as it comes."""
    root, signer = _load(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _server(root, signer, key, permitted_names(root, names), max(now, root.not_valid_before_utc))
    write_whole(folder / SERVER_PAIR, _pem(certificate) + _private(key), 0o600)
    return describe(certificate)


def renew_if_due(folder: Path, names: Sequence[str], now: datetime) -> CertificateInfo | None:
    """What is shown from now on, or None when the certificate there is good for another month, for all names: then the authority's
    key is not needed (`check_key` asks for it)."""
    with _locked(folder):
        _finish(folder)
        root = read(folder / AUTHORITY)
        knows_time = now >= root.not_valid_before_utc  # a box without a clock battery wakes up in 1970
        try:
            certificate = read(folder / SERVER_PAIR)
            certificate.verify_directly_issued_by(root)
            since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
            covers = set(permitted_names(root, names)) <= set(describe(certificate).names)
            if covers and (not knows_time or since <= now < until - RENEWED_BEFORE):
                return None
        except (AuthorityError, InvalidSignature, ValueError):
            pass  # there is none, it cannot be read, or it is of a root before this one
        return renew(folder, names, now)


def check_key(folder: Path) -> None:
    """AuthorityError when the next renewal will fail for want of the authority's key."""
    _load(folder)


def main() -> str | int:
    """Renews if due and checks the key, as the daemon's child process: cryptography takes 9 MB. Its arguments are the
    folder and the box's names. Prints a new certificate's description as JSON. The exit code is `NOT_VALID`, or 1 with
    an error while the certificate in place is valid."""
    folder, names, now = Path(sys.argv[1]), sys.argv[2:], datetime.now(UTC)
    try:
        renewed = renew_if_due(folder, names, now)
        check_key(folder)
    except (AuthorityError, OSError) as error:
        text = f"{folder}: {reason(error)}" if isinstance(error, OSError) else str(error)
        if _is_valid(folder, now):
            return text
        sys.stderr.write(f"{text}\n")
        return NOT_VALID
    if renewed:
        sys.stdout.buffer.write(msgspec.json.encode(renewed))
    return 0


def print_end() -> str | int:
    """Prints when the certificate in the file of the first argument ends, in ms; for the daemon, as `main`."""
    try:
        end = read(Path(sys.argv[1])).not_valid_after_utc
    except AuthorityError as error:
        return str(error)
    sys.stdout.write(str(int(end.timestamp() * 1000)))
    return 0


def _is_valid(folder: Path, now: datetime) -> bool:
    """Whether what is there may be shown for now, whatever is wrong with the authority."""
    try:
        certificate = read(folder / SERVER_PAIR)
    except AuthorityError:
        return False
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def read(file: Path) -> x509.Certificate:
    """The first certificate of a PEM file."""
    try:
        return x509.load_pem_x509_certificate(read_file(file))
    except OSError as error:
        raise AuthorityError(tr("{path} cannot be read: {why}", path=file, why=reason(error))) from None
    except ValueError:
        raise AuthorityError(tr("{path} holds no certificate (PEM)", path=file)) from None


def describe(certificate: x509.Certificate) -> CertificateInfo:
    digits = certificate.fingerprint(hashes.SHA256()).hex().upper()
    return CertificateInfo(
        _names_of(certificate),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)),
    )


def permitted_names(root: x509.Certificate, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that the root was made for."""
    permitted = root.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    return tuple(name for name in names if any(_permits(subtree, name) for subtree in permitted))


def _permits(subtree: x509.GeneralName, name: str) -> bool:
    address = address_of(name)
    if address is not None:
        return isinstance(subtree, x509.IPAddress) and address in ip_network(subtree.value)
    return isinstance(subtree, x509.DNSName) and f".{name}".endswith(f".{subtree.value}")


def _names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


# -- certificates ----------------------------------------------------------------------------------------------------------


def _root(key: ec.EllipticCurvePrivateKey, names: Sequence[str], now: datetime) -> x509.Certificate:
    host = next((name for name in names if name not in OWN_SUFFIXES), "box")
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"mcfd {host} {now:%Y-%m-%d}"[:64])])
    own = [_subtree(name) for name in (*OWN_SUFFIXES, *OWN_NETWORKS)]
    own += [_subtree(name) for name in names if not any(_permits(subtree, name) for subtree in own)]
    return (
        certificate_builder(subject, subject, key.public_key(), key.public_key())
        .not_valid_before(now - DAY)
        .not_valid_after(now + ROOT_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.NameConstraints(own, None), critical=True)
        .sign(key, hashes.SHA256())
    )


def _server(
    root: x509.Certificate,
    signer: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    now: datetime,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mcfd")])
    until = min(now + SERVER_LASTS, root.not_valid_after_utc)
    return (
        certificate_builder(subject, root.subject, key.public_key(), signer.public_key())
        .not_valid_before(max(now - DAY, root.not_valid_before_utc))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )


def certificate_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, signer: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(name: str) -> x509.GeneralName:
    address = address_of(name)
    return x509.DNSName(name) if address is None else x509.IPAddress(address)


def _subtree(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_network(name))
    except ValueError:
        return x509.DNSName(name)


# -- files -----------------------------------------------------------------------------------------------------------------


def _load(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    _finish(folder)
    root = read(folder / AUTHORITY)
    key = _key(folder)
    if key.public_key() != root.public_key():
        raise AuthorityError(
            tr("{path} is not the key of {other}", path=folder / AUTHORITY_KEY, other=folder / AUTHORITY)
        )
    return root, key


def _finish(folder: Path) -> None:
    """What a power cut left of `create` between the new key and its root."""
    following = folder / NEXT
    try:
        if following.exists() and read(following).public_key() == _key(folder).public_key():
            following.replace(folder / AUTHORITY)
    except (AuthorityError, OSError):
        return  # reported where the key is needed


def _key(folder: Path) -> ec.EllipticCurvePrivateKey:
    file, key = folder / AUTHORITY_KEY, None
    try:
        key = serialization.load_pem_private_key(read_file(file), None)
    except OSError as error:
        raise AuthorityError(tr("{path} cannot be read: {why}", path=file, why=reason(error))) from None
    except (ValueError, TypeError):
        pass  # as a key of another kind
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AuthorityError(tr("{path} holds no private key", path=file))
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
