"""The accounts of `config/nats/users.conf` as an operator's JWTs, for chains with more boxes than one wants to write into a file: a new
box needs a credentials file, and no change on any server.

NATS' JWTs, version 2: claims that begin as any JWT's, under `nats` what is NATS' own, signed with an Ed25519 key of an issuer."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from common.wire.keys import PUBLIC, PrivateKey, decode
from common.wire.nkey import ACCOUNT, OPERATOR, USER, decode_seed, encode_nkey, encode_seed

READER_PUBLISHES = (
    "$JS.API.STREAM.INFO.CLOSURES",
    "$JS.API.DIRECT.GET.CLOSURES",
    "$JS.API.CONSUMER.INFO.CLOSURES.headquarters",
    "$JS.API.CONSUMER.MSG.NEXT.CLOSURES.headquarters",
    "$JS.ACK.CLOSURES.headquarters.>",
    "$JS.API.STREAM.INFO.PRESENCE",
    "$JS.API.DIRECT.GET.PRESENCE",
    "$JS.API.CONSUMER.INFO.PRESENCE.headquarters",
    "$JS.API.CONSUMER.MSG.NEXT.PRESENCE.headquarters",
    "$JS.ACK.PRESENCE.headquarters.>",
)
READER_ASKED = "mcf.*.ask"
SHARED = ("closure", "presence", "ask")
"""The subjects by which shops reach headquarters: `mcf.<NIM>.…`."""
FOR_THE_RELAY = (
    "mcf.*.later",
    "$JS.API.DIRECT.GET.PRESENCE.>",
    "$JS.API.DIRECT.GET.CALLS",
    "$JS.API.CONSUMER.MSG.NEXT.CALLS.relay",
    "$JS.ACK.CALLS.relay.>",
)
"""What it reaches of headquarters' streams, beside that."""
RELAY_PUBLISHES = (
    "mcf.*.call",
    "mcf.*.later",
    "$JS.API.DIRECT.GET.PRESENCE.mcf.*.presence",
    "$JS.API.DIRECT.GET.CALLS",
    "$JS.API.CONSUMER.MSG.NEXT.CALLS.relay",
    "$JS.ACK.CALLS.relay.>",
)
FOR_EVER = 253_402_300_799
"""Seconds: the end of the year 9999."""
ANSWER_NANOSECONDS = 60_000_000_000
CALL_NANOSECONDS = 120_000_000_000
"""For which a box may answer a call of the relay, which waits for 90 s."""
_FREE = {"subs": -1, "data": -1, "payload": -1}
_NO_STORE = {"imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
_STORE = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}


class Nkey:
    """A key pair of NATS: operator, account or user."""

    def __init__(self, kind: int, seed: bytes | None = None) -> None:
        seed = seed or os.urandom(32)
        self._key = PrivateKey(seed)
        self.seed = encode_seed(seed, kind)
        self.public = encode_nkey(bytes([kind]), decode(self._key.public.removeprefix(PUBLIC)))

    def sign(self, content: bytes) -> bytes:
        return decode(self._key.sign(content).partition(",")[2])


class NatsSeeds(msgspec.Struct, frozen=True):
    """Seeds of all that signs; whoever has this file may let in any box."""

    operator: str
    system: str
    headquarters: str
    shops: str
    box_signer: str

    @classmethod
    def made(cls) -> NatsSeeds:
        return cls(Nkey(OPERATOR).seed, *(Nkey(ACCOUNT).seed for _ in range(4)))


def server_conf(keys: NatsSeeds, at: int, revoked: Sequence[str] = (), before: str | None = None) -> str:
    """In the place of `users.conf`; `at` in seconds since 1970. `revoked` are public keys of users, which never come in again: new
    credentials have a new key, whatever the clock was when these were made. `before` is the file that the servers have: a server does not
    reload another operator's line than the one it began with. ValueError when it has none of this operator."""
    operator, system = Nkey(OPERATOR, decode_seed(keys.operator, OPERATOR)), _account(keys.system)
    hq, shops = _account(keys.headquarters), _account(keys.shops)
    known = {"revocations": dict.fromkeys(revoked, FOR_EVER)} if revoked else {}
    signed = {
        system.public: _jwt(operator, system.public, "SYS", at, _claims(_FREE | _NO_STORE)),
        hq.public: _jwt(operator, hq.public, "HQ", at, _hq_claims() | known),
        shops.public: _jwt(operator, shops.public, "SHOPS", at, _shops_claims(hq, _account(keys.box_signer)) | known),
    }
    claims = {"system_account": system.public, "type": "operator", "version": 2}
    own = _jwt(operator, operator.public, "mcfd", at, claims) if before is None else _operator_in(before, operator)
    lines = [f"  {public}: {jwt}" for public, jwt in signed.items()]
    return "\n".join([f"operator: {own}", "resolver: MEMORY", "resolver_preload: {", *lines, "}", ""])


def _operator_in(conf: str, operator: Nkey) -> str:
    found = re.search(r"^operator: (\S+\.(\S+)\.\S+)$", conf, re.MULTILINE)
    if found is not None:
        content = found[2]
        if (
            msgspec.json.decode(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))).get("sub")
            == operator.public
        ):
            return found[1]
    raise ValueError("not the users.conf of these keys")


def box_credentials(keys: NatsSeeds, nims: Sequence[str], at: int) -> tuple[str, str]:
    """The credentials file of a box with these machines, and its public key. What it may do is in the signing key's template."""
    claims = {"issuer_account": _account(keys.shops).public, "tags": [f"nim:{nim}" for nim in nims]}
    return _credentials(_account(keys.box_signer), nims[0], claims, at)


def reader_credentials(keys: NatsSeeds, at: int) -> tuple[str, str]:
    """Of headquarters itself."""
    user = Nkey(USER)
    claims = {
        **_FREE,
        "pub": {"allow": list(READER_PUBLISHES)},
        "sub": {"allow": [f"_INBOX.{user.public}.>", READER_ASKED]},
        "resp": {"max": 1, "ttl": ANSWER_NANOSECONDS},
    }
    return _credentials(_account(keys.headquarters), "reader", claims, at, user)


def relay_credentials(keys: NatsSeeds, at: int) -> tuple[str, str]:
    """Of all relays."""
    user = Nkey(USER)
    claims = {**_FREE, "pub": {"allow": list(RELAY_PUBLISHES)}, "sub": {"allow": [f"_INBOX.{user.public}.>"]}}
    return _credentials(_account(keys.shops), "relay", claims, at, user)


def administrator_credentials(keys: NatsSeeds, at: int) -> tuple[str, str]:
    """Makes the streams, once."""
    return _credentials(_account(keys.headquarters), "administrator", _FREE, at)


def _account(seed: str) -> Nkey:
    return Nkey(ACCOUNT, decode_seed(seed, ACCOUNT))


def _hq_claims() -> dict[str, Any]:
    # An export is for whoever the operator has let in: these two accounts.
    exports = [{"name": what, "subject": f"mcf.*.{what}", "type": "service"} for what in SHARED]
    exports += [{"name": what, "subject": what, "type": "service"} | _answers(what) for what in FOR_THE_RELAY]
    return _claims(_FREE | _NO_STORE | _STORE, exports=exports)


def _answers(subject: str) -> dict[str, str]:
    """Of a consumer come as many messages as were asked for."""
    return {"response_type": "Stream"} if ".MSG.NEXT." in subject else {}


def _shops_claims(hq: Nkey, signer: Nkey) -> dict[str, Any]:
    imports = [{"name": what, "subject": f"mcf.*.{what}", "account": hq.public, "type": "service"} for what in SHARED]
    imports += [{"name": what, "subject": what, "account": hq.public, "type": "service"} for what in FOR_THE_RELAY]
    template = {
        **_FREE,
        "pub": {"allow": [f"mcf.{{{{tag(nim)}}}}.{what}" for what in SHARED]},
        "sub": {"allow": ["_INBOX.{{subject()}}.>", "mcf.{{tag(nim)}}.call"]},
        "resp": {"max": 1, "ttl": CALL_NANOSECONDS},
    }
    scope = {"kind": "user_scope", "key": signer.public, "role": "box", "template": template}
    return _claims(_FREE | _NO_STORE, imports=imports, signing_keys=[scope])


def _claims(limits: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Of an account."""
    return {**more, "limits": limits, "type": "account", "version": 2}


def _credentials(
    issuer: Nkey, name: str, claims: Mapping[str, Any], at: int, user: Nkey | None = None
) -> tuple[str, str]:
    user = user or Nkey(USER)
    jwt = _jwt(issuer, user.public, name, at, {"pub": {}, "sub": {}, **claims, "type": "user", "version": 2})
    blocks = (("NATS USER JWT", jwt), ("USER NKEY SEED", user.seed))
    return "\n".join(f"-----BEGIN {name}-----\n{text}\n------END {name}------\n" for name, text in blocks), user.public


def _jwt(issuer: Nkey, subject: str, name: str, at: int, claims: Mapping[str, Any]) -> str:
    content: dict[str, Any] = {"iat": at, "iss": issuer.public, "name": name, "sub": subject, "nats": claims}
    content["jti"] = base64.b32encode(hashlib.sha256(msgspec.json.encode(content)).digest()).decode().rstrip("=")
    parts = [_encoded(msgspec.json.encode(part)) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, content)]
    signed = ".".join(parts)
    return f"{signed}.{_encoded(issuer.sign(signed.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
