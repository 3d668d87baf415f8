"""A closure as CloudEvents 1.0, structured JSON; `docs/closure-event.schema.json` is its shape in full."""

from __future__ import annotations

from typing import Any

import msgspec

from daemon.core.certification import Mode
from daemon.core.delivery import Outgoing

TYPES: dict[Mode, str] = {"live": "bf.mcfd.closure.v1", "test": "bf.mcfd.closure.test.v1"}
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


def compose(entry: Outgoing, box: str) -> bytes:
    """The event of one closure; the same bytes at every try. ValueError when the stored report cannot be read."""
    try:
        report = msgspec.json.decode(entry.body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ValueError(f"the stored report is not a JSON object: {error}") from error
    if not report.get("created_at"):
        raise ValueError("the stored report has no created_at")
    data = {**report, "mode": entry.mode, "box": box}
    if entry.chain:
        data["chain_head"] = entry.chain.hex()
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": entry.report_id,
            "source": f"/mcf/{entry.nim}",
            "type": TYPES[entry.mode],
            "subject": str(entry.z_number),
            "time": report["created_at"],
            "datacontenttype": "application/json",
            "data": data,
        }
    )
