"""A closure as it is sent: `common.wire.closure` is its shape, and `docs/closure-event.schema.json` for whoever has another language."""

from __future__ import annotations

from typing import Any

import msgspec

from common.wire.calendar_closure import TYPES as CALENDAR_TYPES
from common.wire.closure import TYPES
from common.wire.trial import Trial, TrialData, encode_trial
from daemon.core.delivery import Outgoing, Proof


def compose(entry: Outgoing, box: str = "", key_id: str = "") -> bytes:
    """The event of one closure; the same bytes at every try. ValueError when the stored report cannot be read.

    `box` is the label of the box, without one the NIM; `key_id` names the key that signs first."""
    try:
        report = msgspec.json.decode(entry.body, type=dict[str, Any])
        body = entry.body.decode()
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError(f"the stored report is not a JSON object: {error}") from error
    if not report.get("created_at"):
        raise ValueError("the stored report has no created_at")
    data = {**report, "mode": entry.mode, "box": box or entry.nim}
    if entry.chain:
        data["chain_head"] = entry.chain.hex()
    if entry.proof is not None:
        data |= {**_proven(entry.proof), "body": body}
    if entry.kind != "Z":
        ledger_id, epoch = entry.lineage
        data |= {"ledger_id": ledger_id, "epoch": epoch, "body": body}
    if key_id:
        data["key_id"] = key_id
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": entry.report_id,
            "source": f"/mcf/{entry.nim}",
            "type": TYPES[entry.mode] if entry.kind == "Z" else CALENDAR_TYPES[entry.kind, entry.mode],
            "subject": str(entry.z_number),
            "time": report["created_at"],
            "datacontenttype": "application/json",
            "data": data,
        }
    )


def _proven(proof: Proof) -> dict[str, object]:
    return {
        "ledger_id": proof.ledger_id,
        "epoch": proof.epoch,
        "previous_report_id": proof.previous_report_id,
        "previous_chain_head": proof.previous_head.hex(),
        "first_seq": proof.first_seq,
        "last_seq": proof.last_seq,
        "opening_counters": None
        if proof.opening is None
        else dict(zip(("tc", "fvc", "frc"), proof.opening, strict=True)),
        "gaps": [{"first": gap.first, "last": gap.last, "known_from": gap.known_from} for gap in proof.gaps],
    }


def compose_trial(event_id: str, nim: str, *, at: str, box: str, key_id: str) -> bytes:
    """The message of `mcfd upstream test`, which says nothing. `at` in RFC 3339; `box` and `key_id` as in a closure's event."""
    data = TrialData(nim, box, key_id)
    return encode_trial(Trial(id=event_id, source=f"/mcf/{nim}", time=at, data=data))
