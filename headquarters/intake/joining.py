"""Joining of boxes: makes codes, answers with the configuration, and limits guesses."""

import hashlib
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from common.login_guard import Budget, LoginLimits, LoginPlace, LoginRules, network_of
from common.wire.errors import BadEvent
from common.wire.instants import now_millis
from common.wire.joining import JoinAnswer, JoinLink, JoinRequest, read_code, read_request
from common.wire.keys import BadKey, PublicKey, verifying_key
from common.wire.signing import verify
from headquarters.core.nats_accounts import NatsIssuer, user_of
from headquarters.intake.threads import Threads
from headquarters.store.joining import JoinRefused
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

CLOSURES_PATH = "closures"
MINUTES = 60
"""Default lifetime of a code."""
MAX_MINUTES = 7 * 24 * 60
RULES = LoginRules(account=Budget(600, 0.1), address=Budget(10, 30), address_long=Budget(100, 300))
"""Wrong codes: ten at once from one address, then two a minute; ten a second from all addresses."""
_GUESS = "join"
_PEM_END = "-----END CERTIFICATE-----"


class TooManyGuesses(Exception):
    """`seconds` is the delay until the next attempt."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong codes; again in {seconds} s")
        self.seconds = seconds


class JoinTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the answer to a box. `url` of this headquarters, empty if not configured; `servers` of NATS for
    boxes; `authority` is the PEM of a private authority of both; `certificate` is the one this headquarters presents,
    if it terminates TLS itself; `issuer` admits boxes at the NATS servers, without it closures use HTTPS."""

    url: str = ""
    servers: str = ""
    authority: Path | None = None
    certificate: Path | None = None
    issuer: NatsIssuer | None = None

    def link(self, code: str) -> JoinLink:
        """The link as displayed. Raises OSError if the certificate is unreadable."""
        pin = ""
        if self.url and self.authority is not None and self.certificate is not None:
            pem = self.certificate.read_text("ascii")
            first = pem[pem.index("-----BEGIN CERTIFICATE-----") : pem.index(_PEM_END) + len(_PEM_END)]
            pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()
        return JoinLink(code, self.url, pin)

    def answer(self, public: str, nims: Sequence[str], label: str, at: int) -> JoinAnswer:
        """For the box with this public key (`whpk_…`); `at` in seconds since 1970."""
        authority = "" if self.authority is None else self.authority.read_text("ascii")
        if self.issuer is None:
            return JoinAnswer(kind="https", url=CLOSURES_PATH, ca=authority, label=label)
        jwt = self.issuer.box_jwt(user_of(public), nims, at)
        return JoinAnswer(kind="nats", url=self.servers, jwt=jwt, ca=authority, label=label)


class JoinService:
    """One per instance."""

    def __init__(self, store: HqStore, threads: Threads, terms: JoinTerms, *, is_direct: bool = False) -> None:
        """`is_direct`: without a reverse proxy."""
        self._store = store
        self._threads = threads
        self._terms = terms
        self._limits = LoginLimits(RULES, time.monotonic)
        self.is_direct = is_direct

    async def make_code(self, nims: Sequence[str], *, by: str, label: str = "", region: str = "") -> JoinLink:
        make, now = self._store.joining.make_code, now_millis()
        named = {"by": by, "label": label, "region": region}
        code = await self._threads.run(make, nims, now=now, ends_at=now + MINUTES * 60_000, **named)
        return await self._threads.run(self._terms.link, code)

    async def join(self, headers: Mapping[str, str], body: bytes, address: str) -> JoinAnswer:
        """Raises BadEvent for an invalid request, NotSigned if its key did not sign it, JoinRefused, and
        TooManyGuesses."""
        place = LoginPlace(network_of(address))
        if wait := self._limits.begin(_GUESS, place, exists=False):
            raise TooManyGuesses(wait)
        request, code = _read(headers, body)
        now = now_millis()
        try:
            joined = await self._threads.run(self._store.joining.join, code, request.key, request.nims, now)
        except JoinRefused as refused:
            log.warning("join.refused", reason=refused.reason, nims=request.nims, address=address)
            if refused.reason != "CODE_UNKNOWN":
                self._limits.uncount(_GUESS, place, exists=False)
            raise
        self._limits.uncount(_GUESS, place, exists=False)
        log.info("box.joined", nims=request.nims, label=joined.label, version=request.version, address=address)
        return await self._threads.run(self._terms.answer, request.key, request.nims, joined.label, now // 1000)


def _read(headers: Mapping[str, str], body: bytes) -> tuple[JoinRequest, str]:
    """The request and its normalized code."""
    request = read_request(body)
    try:
        key = verifying_key(request.key)
    except BadKey as error:
        raise BadEvent("key", str(error)) from None
    if not isinstance(key, PublicKey):
        raise BadEvent("key", "is a shared secret, not a public key")
    # Its time is ignored: a repeated request gets the same answer, and a new box may not know the date.
    verify([key], headers, body, now=0, window=None)
    try:
        return request, read_code(request.code)
    except ValueError as error:
        raise BadEvent("code", str(error)) from None
