"""The published test vectors, made anew: `PYTHONPATH=tests python -m support.receivers.vectors` writes them into docs/vectors.

Every value is fixed (keys, ids, times), so that the file changes only when `common.wire` does, which a test does not let pass
unseen."""

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import msgspec

from common.wire.closure import (
    GENESIS,
    TYPES,
    ClosureData,
    ClosureEvent,
    CounterValues,
    GroupTotal,
    Mode,
    PaymentTotal,
    TypeGroupTotal,
    TypeTotal,
    ZGap,
    closure_head,
    link_of,
)
from common.wire.instants import instant_text
from common.wire.keys import (
    PUBLIC,
    USER,
    PrivateKey,
    SharedKey,
    decode,
    encode,
    encode_nkey,
    encode_seed,
    private_line,
    signing_key,
)
from common.wire.presence import Presence, encode_presence
from common.wire.signing import sign

FILE = Path(__file__).parents[3] / "docs" / "vectors" / "closures.json"
NIM = "EL02000015-1"
EVENING = 1_765_044_000_000  # 2025-12-06T18:00:00Z
DAY = 86_400_000
SIGNED_AT = 1_765_044_030
REPORT_FIELDS = (
    *("kind", "nim", "certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type", "by_type_and_group"),
    *("by_payment", "credit_notes", "specific_tax", "psvb", "incomplete", "period_start", "period_end", "fvc_start"),
    *("fvc_end", "z_number", "report_id", "created_at", "mcf_counters", "unexplained", "chain_previous"),
)
"""Those of the stored report, in its order; what else a closure carries is added at sending."""


def _seed(name: str) -> bytes:
    return hashlib.sha256(f"a key for tests only: {name}".encode()).digest()


SHOP, SHOP_NEW, THIEF = (PrivateKey(_seed(name)) for name in ("shop", "shop-new", "thief"))
SECRET_LINE = "whsec_" + encode(_seed("secret"))
SECRET = signing_key(SECRET_LINE)
KEYS: dict[str, PrivateKey | SharedKey] = {"shop": SHOP, "shop-new": SHOP_NEW, "secret": SECRET, "thief": THIEF}


def keys() -> list[dict[str, str]]:
    return [
        {"name": "shop", "signs": private_line(_seed("shop")), "verifies": SHOP.public, "id": SHOP.id},
        {"name": "shop-new", "signs": private_line(_seed("shop-new")), "verifies": SHOP_NEW.public, "id": SHOP_NEW.id},
        {"name": "secret", "signs": SECRET_LINE, "verifies": SECRET_LINE, "id": SECRET.id},
        {"name": "thief", "signs": private_line(_seed("thief")), "verifies": THIEF.public, "id": THIEF.id},
        {"name": "shop, as NATS writes it", "signs": encode_seed(_seed("shop")), "verifies": _nkey(), "id": SHOP.id},
    ]


def _nkey() -> str:
    return encode_nkey(bytes([USER]), decode(SHOP.public.removeprefix(PUBLIC)))


def _id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://mcfd.example/vectors/{name}"))


LEDGER = _id("ledger")


def closure(
    name: str,
    before: ClosureData | None = None,
    *,
    sales: int = 2,
    entry: str = "",
    mode: Mode = "live",
    epoch: int = 0,
    key: str = "shop",
    **changes: Any,
) -> ClosureData:
    """The closure after `before`; chained to an entry of the book, or to `before` itself when nothing was sold."""
    z_number = before.z_number + 1 if before else 1
    opening = before.mcf_counters if before else CounterValues(tc=10, fvc=10, frc=0)
    counters = CounterValues(tc=opening.tc + sales, fvc=opening.fvc + sales, frc=opening.frc)
    last_seq = before.last_seq if before else 0
    head = before.chain_head if before else GENESIS.hex()
    ht, tva = 6780 * sales, 1220 * sales
    closing = ClosureData(
        kind="Z",
        nim=NIM,
        certs_count=sales,
        total_ttc=ht + tva,
        total_ht=ht,
        total_tva=tva,
        by_group=(GroupTotal(group="B", ht=ht, tva=tva, ttc=ht + tva),) if sales else (),
        by_type=(TypeTotal(invoice_type="FV", count=sales, total_ttc=ht + tva),) if sales else (),
        by_type_and_group=(TypeGroupTotal(invoice_type="FV", group="B", ht=ht, tva=tva, ttc=ht + tva),)
        if sales
        else (),
        by_payment=(PaymentTotal(method="E", label="Espèces", amount=ht + tva),) if sales else (),
        period_start=before.period_end if before else instant_text(EVENING - DAY),
        period_end=instant_text(EVENING + (z_number - 1) * DAY),
        fvc_start=opening.fvc + 1 if sales else counters.fvc,
        fvc_end=counters.fvc,
        z_number=z_number,
        report_id=_id(name),
        created_at=instant_text(EVENING + (z_number - 1) * DAY),
        mcf_counters=counters,
        chain_previous=hashlib.sha256(entry.encode()).hexdigest() if entry else head,
        mode=mode,
        box="caisse-1",
        ledger_id=LEDGER,
        epoch=epoch,
        previous_report_id=before.report_id if before else None,
        previous_chain_head=head,
        first_seq=last_seq + 1,
        last_seq=last_seq + sales,
        opening_counters=opening,
        key_id=KEYS[key].id,
    )
    return proven(msgspec.structs.replace(closing, **changes))


def proven(created: ClosureData) -> ClosureData:
    """With the stored body, and the head over it."""
    everything = msgspec.to_builtins(created)
    body = msgspec.json.encode({field: everything[field] for field in REPORT_FIELDS}).decode()
    created = msgspec.structs.replace(created, body=body)
    return msgspec.structs.replace(
        created, chain_head=closure_head(bytes.fromhex(created.chain_previous), link_of(created)).hex()
    )


def event_of(created: ClosureData) -> bytes:
    return msgspec.json.encode(
        ClosureEvent(
            specversion="1.0",
            id=created.report_id,
            source=f"/mcf/{created.nim}",
            type=TYPES[created.mode],
            subject=str(created.z_number),
            time=created.created_at,
            datacontenttype="application/json",
            data=created,
        )
    )


def _vector(name: str, created: ClosureData, *signers: str, **more: Any) -> dict[str, Any]:
    content = event_of(created)
    headers = sign([KEYS[signer] for signer in signers], created.report_id, SIGNED_AT, content)
    return {"name": name, "headers": headers, "content": content.decode(), "signed_by": [*signers], **more}


def vectors() -> dict[str, Any]:
    first = closure("Z 1", entry="record 2")
    empty = closure("Z 2", first, sales=0)
    third = closure("Z 3", empty, entry="record 4", key="shop-new")
    again = closure("Z 3 of epoch 1", empty, sales=3, entry="another record 5", epoch=1, key="shop-new")
    gaps = (ZGap(first=4, last=5, known_from="ledger.high-water"),)
    restored = closure("Z 6 of epoch 1", third, entry="record 6", epoch=1, key="shop-new", z_number=6, gaps=gaps)
    sandbox = closure("Z 1 of the sandbox", sales=1, entry="record 1 of the sandbox", mode="test", key="secret")
    return {
        "about": "Closures as mcfd sends them, for whoever writes a receiver: docs/upstream.md says what each has to hold. "
        "The keys are for tests only. Each signature is of webhook-timestamp; take that second for now.",
        "now": SIGNED_AT,
        "keys": keys(),
        "good": [
            _vector("the first of a book, with two sales", first, "shop"),
            _vector("an empty day: chained to the closure before", empty, "shop"),
            _vector("while the key is replaced: two signatures, either is enough", third, "shop-new", "shop"),
            _vector(
                "from a ledger put back after Z 3: 4 and 5 were given by the one it replaced", restored, "shop-new"
            ),
            _vector("of the sandbox, with a shared secret: no money", sandbox, "secret"),
        ],
        "forks": [
            _vector(
                "Z 3 a second time, from a ledger put back after Z 2", again, "shop-new", instead_of=third.report_id
            )
        ],
        "wrong": _wrong(first, empty),
        "presence": _presence(third),
    }


def _wrong(first: ClosureData, empty: ClosureData) -> list[dict[str, Any]]:
    good = _vector("", first, "shop")
    altered = msgspec.structs.replace(first, total_ttc=first.total_ttc - 1000)
    rewritten = proven(msgspec.structs.replace(empty, certs_count=1, chain_head=""))
    return [
        good
        | {"name": "the content changed on the way", "content": good["content"].replace("16000", "15000", 1)}
        | {"fails": "signature"},
        _vector("signed with another's key", first, "thief", fails="signature"),
        good
        | {"name": "another id beside it", "headers": good["headers"] | {"webhook-id": empty.report_id}}
        | {"fails": "signature"},
        good | {"name": "no signature at all", "headers": {"webhook-id": first.report_id}, "fails": "signature"},
        _vector("well signed, a figure is not the one in the body", altered, "shop", fails="body"),
        _vector(
            "well signed, the head is not of this closure",
            msgspec.structs.replace(rewritten, chain_head=empty.chain_head),
            "shop",
            fails="chain",
        ),
    ]


def _presence(last: ClosureData) -> dict[str, Any]:
    content = encode_presence(
        Presence(
            type="bf.mcfd.presence.v1",
            nim=NIM,
            at="2025-12-08T18:05:00.000Z",
            ledger=LEDGER,
            boot="5eed0001",
            version="1.0.0",
            key=SHOP_NEW.id,
            z=last.z_number,
            z_head=last.chain_head[:16],
            seq=last.last_seq,
            head=last.chain_head[:16],
            counters=(14, 14, 0),
            certified="2025-12-08T17:41:10.000Z",
            connected=True,
            drift=-2,
            tax_days=0,
            disk=12_345,
            config="0badcafe",
        )
    )
    headers = sign([SHOP_NEW], _id("presence"), SIGNED_AT + 2 * 86_400, content)
    return {"headers": headers, "content": content.decode(), "signed_by": ["shop-new"]}


def text() -> str:
    return json.dumps(vectors(), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
