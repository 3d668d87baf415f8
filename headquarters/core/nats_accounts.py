"""The accounts of `config/nats/users.conf` as JWTs of an operator, for large chains: a new box needs a credentials
file and no change on any server.

Format: NATS JWTs version 2, with NATS' claims under `nats`, signed with an issuer's Ed25519 key."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from common.wire.keys import (
    ACCOUNT,
    OPERATOR,
    PUBLIC,
    USER,
    PrivateKey,
    credentials_text,
    decode,
    decode_seed,
    encode_nkey,
    encode_seed,
)

READER_PUBLISHES = (
    "$JS.API.STREAM.INFO.CLOSURES",
    "$JS.API.DIRECT.GET.CLOSURES",
    "$JS.API.CONSUMER.INFO.CLOSURES.headquarters",
    "$JS.API.CONSUMER.MSG.NEXT.CLOSURES.headquarters",
    "$JS.ACK.CLOSURES.headquarters.>",
    "$JS.API.DIRECT.GET.PRESENCE",
)
ASK_SUBJECTS = "mcf.*.ask"
SHARED = ("closure", "presence", "ask")
"""Subjects of shops to headquarters: `mcf.<NIM>.…`."""
FOR_THE_RELAY = (
    "mcf.*.later",
    "$JS.API.DIRECT.GET.PRESENCE.>",
    "$JS.API.DIRECT.GET.CALLS",
    "$JS.API.CONSUMER.MSG.NEXT.CALLS.relay",
    "$JS.ACK.CALLS.relay.>",
)
"""Further subjects of headquarters' account that the relay uses."""
SERVICES = (*((name, f"mcf.*.{name}") for name in SHARED), *((subject, subject) for subject in FOR_THE_RELAY))
"""Name and subject of what headquarters' account offers the shops' one."""
RELAY_PUBLISHES = ("mcf.*.call", *(each.replace("PRESENCE.>", "PRESENCE.mcf.*.presence") for each in FOR_THE_RELAY))
FOR_EVER = 253_402_300_799
"""Seconds since 1970: the end of the year 9999."""
RESOLVER = '{ type: full, dir: "/var/lib/nats/jwt", allow_delete: false, interval: "2m" }'
"""Directory of accounts received at run time, and the interval at which servers compare them."""
UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
LOOKUP = "$SYS.REQ.ACCOUNT.{account}.CLAIMS.LOOKUP"
ANSWER_NANOSECONDS = 60_000_000_000
CALL_NANOSECONDS = 120_000_000_000
"""Time for a box's answer to a call of the relay, which waits 90 s."""
Program = Literal["reader", "relay", "administrator"]
_FREE: dict[str, Any] = {"subs": -1, "data": -1, "payload": -1}
_NO_STORE = {"imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
_STORE = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}


class Nkey:
    """A NATS key pair of an operator, account or user."""

    def __init__(self, kind: int, seed: bytes | None = None) -> None:
        seed = seed or os.urandom(32)
        self._key = PrivateKey(seed)
        self.seed = encode_seed(seed, kind)
        self.public = encode_nkey(bytes([kind]), decode(self._key.public.removeprefix(PUBLIC)))

    def sign(self, content: bytes) -> bytes:
        return decode(self._key.sign(content).partition(",")[2])


class NatsSeeds(msgspec.Struct, frozen=True):
    """Seeds of all signing keys; this file can admit any box."""

    operator: str
    system: str
    headquarters: str
    shops: str
    box_signer: str
    operator_signer: str = ""
    """Headquarters' key that signs the shops' account for the operator; empty if not used."""

    @classmethod
    def generate(cls) -> NatsSeeds:
        return cls(Nkey(OPERATOR).seed, *(Nkey(ACCOUNT).seed for _ in range(4)))


class NatsIssuer(msgspec.Struct, frozen=True):
    """Keys of a running headquarters to admit and revoke boxes: fewer than `NatsSeeds`, and as secret."""

    operator_signer: str
    box_signer: str
    headquarters: str
    """Public key of the account, like `shops`."""
    shops: str
    updater: str
    """Credentials of a user in the system account who may look up and update accounts."""

    def box_jwt(self, public: str, nims: Sequence[str], at: int) -> str:
        """User JWT for the public key `public` (`U…`) and these machines; `at` in seconds since 1970."""
        claims = _box_claims(self.shops, nims)
        return _user_jwt(_account(self.box_signer), public, nims[0], claims, at)

    def shops_jwt(self, present: str, valid: Collection[str], revoked: Collection[str], now: int) -> str | None:
        """The shops' account as it should replace `present`, the servers' version; None if nothing changes. Users
        revoked there stay revoked unless they are in `valid`. Its time is later than the present one's, since servers
        prefer the later of two accounts."""
        before = _content(present)
        revocations = before["nats"].get("revocations", {})
        names = (set(revocations) - set(valid)) | set(revoked)
        signer, account = Nkey(OPERATOR, decode_seed(self.operator_signer, OPERATOR)), _account(self.box_signer)
        claims = _shops_claims(self.headquarters, account.public)
        if names:
            claims["revocations"] = {name: revocations.get(name, FOR_EVER) for name in sorted(names)}
        if claims == before["nats"]:
            return None
        return _jwt(signer, self.shops, "SHOPS", max(now, int(before["iat"]) + 1), claims)


def user_of(line: str) -> str:
    """The NATS user (`U…`) of a box's registered key (`whpk_…` or `U…`); empty for a shared secret."""
    if line.startswith(PUBLIC):
        return encode_nkey(bytes([USER]), decode(line.removeprefix(PUBLIC)))
    return line if line.startswith("U") else ""


def issuer_of(keys: NatsSeeds, at: int) -> NatsIssuer:
    """`keys` must have an `operator_signer`."""
    user = Nkey(USER)
    claims = _permissions(user, UPDATE, LOOKUP.format(account="*"))
    updater, _ = _credentials(_account(keys.system), "updater", claims, at, user)
    hq, shops = _account(keys.headquarters).public, _account(keys.shops).public
    return NatsIssuer(keys.operator_signer, keys.box_signer, hq, shops, updater)


def server_conf(keys: NatsSeeds, at: int, revoked: Sequence[str] = (), before: str | None = None) -> str:
    """Replaces `users.conf`; `at` in seconds since 1970. `revoked` are public keys of users, rejected for ever, since
    new credentials have a new key. `before` is the servers' present file: its operator line is reused, because a
    server cannot reload another one. Raises ValueError if it has none of this operator."""
    operator, system = Nkey(OPERATOR, decode_seed(keys.operator, OPERATOR)), _account(keys.system)
    hq, shops = _account(keys.headquarters), _account(keys.shops)
    revocations = {"revocations": dict.fromkeys(revoked, FOR_EVER)} if revoked else {}
    shops_claims = _shops_claims(hq.public, _account(keys.box_signer).public)
    signed = {
        system.public: _jwt(operator, system.public, "SYS", at, _claims(_FREE | _NO_STORE)),
        hq.public: _jwt(operator, hq.public, "HQ", at, _hq_claims() | revocations),
        shops.public: _jwt(operator, shops.public, "SHOPS", at, shops_claims | revocations),
    }
    claims: dict[str, Any] = {"system_account": system.public, "type": "operator", "version": 2}
    resolver = "MEMORY"
    if keys.operator_signer:
        claims["signing_keys"] = [Nkey(OPERATOR, decode_seed(keys.operator_signer, OPERATOR)).public]
        resolver = RESOLVER
    own = _jwt(operator, operator.public, "mcfd", at, claims) if before is None else _operator_in(before, operator)
    lines = [f"  {public}: {jwt}" for public, jwt in signed.items()]
    return "\n".join([f"operator: {own}", f"resolver: {resolver}", "resolver_preload: {", *lines, "}", ""])


def _operator_in(conf: str, operator: Nkey) -> str:
    found = re.search(r"^operator: (\S+\.\S+\.\S+)$", conf, re.MULTILINE)
    if found is not None and _content(found[1]).get("sub") == operator.public:
        return found[1]
    raise ValueError("not the users.conf of these keys")


def _content(jwt: str) -> dict[str, Any]:
    """Claims of a JWT already verified by the servers. Raises ValueError if it is none."""
    content = jwt.split(".")[1] if jwt.count(".") == 2 else ""  # noqa: PLR2004  head, content, signature
    found: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
    return found


def box_credentials(keys: NatsSeeds, nims: Sequence[str], at: int) -> tuple[str, str]:
    """Credentials file of a box with these machines, and its public key. The permissions are in the signing key's
    template."""
    return _credentials(_account(keys.box_signer), nims[0], _box_claims(_account(keys.shops).public, nims), at)


def program_credentials(keys: NatsSeeds, program: Program, at: int) -> tuple[str, str]:
    """For headquarters (`reader`), all relays (`relay`), or the one-time creation of the streams (`administrator`)."""
    user, claims = Nkey(USER), _FREE
    if program == "relay":
        claims = _permissions(user, *RELAY_PUBLISHES)
    elif program == "reader":
        claims = _permissions(user, *READER_PUBLISHES) | {"resp": {"max": 1, "ttl": ANSWER_NANOSECONDS}}
        claims["sub"]["allow"].append(ASK_SUBJECTS)
    account = keys.shops if program == "relay" else keys.headquarters
    return _credentials(_account(account), program, claims, at, user)


def _permissions(user: Nkey, *publishes: str) -> dict[str, Any]:
    """Permission to publish on these subjects and to receive the answers."""
    return {**_FREE, "pub": {"allow": [*publishes]}, "sub": {"allow": [f"_INBOX.{user.public}.>"]}}


def _account(seed: str) -> Nkey:
    return Nkey(ACCOUNT, decode_seed(seed, ACCOUNT))


def _hq_claims() -> dict[str, Any]:
    # Exports are visible to the operator's accounts only: these two. A consumer sends several messages per request.
    exports = [{"name": name, "subject": subject, "type": "service"} for name, subject in SERVICES]
    several = {"response_type": "Stream"}
    exports = [each | (several if ".MSG.NEXT." in each["subject"] else {}) for each in exports]
    return _claims(_FREE | _NO_STORE | _STORE, exports=exports)


def _box_claims(shops: str, nims: Sequence[str]) -> dict[str, Any]:
    return {"issuer_account": shops, "tags": [f"nim:{nim}" for nim in nims]}


def _shops_claims(hq: str, signer: str) -> dict[str, Any]:
    """`hq` and `signer` are the public keys of headquarters' account and of the boxes' signer."""
    imports = [{"name": name, "subject": subject, "account": hq, "type": "service"} for name, subject in SERVICES]
    template = {
        **_FREE,
        "pub": {"allow": [f"mcf.{{{{tag(nim)}}}}.{what}" for what in SHARED]},
        "sub": {"allow": ["_INBOX.{{subject()}}.>", "mcf.{{tag(nim)}}.call"]},
        "resp": {"max": 1, "ttl": CALL_NANOSECONDS},
    }
    scope = {"kind": "user_scope", "key": signer, "role": "box", "template": template}
    return _claims(_FREE | _NO_STORE, imports=imports, signing_keys=[scope])


def _claims(limits: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Claims of an account."""
    return {**more, "limits": limits, "type": "account", "version": 2}


def _credentials(
    issuer: Nkey, name: str, claims: Mapping[str, Any], at: int, user: Nkey | None = None
) -> tuple[str, str]:
    user = user or Nkey(USER)
    jwt = _user_jwt(issuer, user.public, name, claims, at)
    return credentials_text(jwt, user.seed), user.public


def _user_jwt(issuer: Nkey, public: str, name: str, claims: Mapping[str, Any], at: int) -> str:
    return _jwt(issuer, public, name, at, {"pub": {}, "sub": {}, **claims, "type": "user", "version": 2})


def _jwt(issuer: Nkey, subject: str, name: str, at: int, claims: Mapping[str, Any]) -> str:
    content: dict[str, Any] = {"iat": at, "iss": issuer.public, "name": name, "sub": subject, "nats": claims}
    content["jti"] = base64.b32encode(hashlib.sha256(msgspec.json.encode(content)).digest()).decode().rstrip("=")
    parts = [_encoded(msgspec.json.encode(part)) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, content)]
    signed = ".".join(parts)
    return f"{signed}.{_encoded(issuer.sign(signed.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
