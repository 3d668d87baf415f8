"""What mcfd posts to a `[[webhook]]`, for the OpenAPI document."""

from __future__ import annotations

from typing import Final

from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, Operation, PathItem, RequestBody, Schema

from daemon.api.document.operation import choice, header, reference
from daemon.core import events
from daemon.core.report.fiscal_reports import ZReport
from daemon.core.report.receipt import Receipt

DATA: Final = {
    events.CERTIFIED: Receipt,
    events.CLOSURE: ZReport,
    events.DEFERRED: events.RequestEvent,
    events.REFUSED: events.RequestEvent,
    events.IN_DOUBT: events.RequestEvent,
    events.CONNECTED: events.MachineEvent,
    events.DISCONNECTED: events.MachineEvent,
    events.SLOW: events.MachineEvent,
    events.ATTENTION: events.MachineEvent,
    events.TAX_SERVER: events.MachineEvent,
    events.OUTAGE: events.OutageEvent,
    events.BACK: events.OutageEvent,
    events.PRINTER: events.MachineEvent,
    events.TEST: events.MachineEvent,
}
"""By the type of an event what its `data` is."""

SIGNED: Final = (
    header("webhook-id", "The same for the same event: deduplicate by it", required=True),
    header("webhook-timestamp", "Seconds, of this delivery", required=True),
    header("webhook-signature", "Of Standard Webhooks", required=True),
    header("X-Avepay-Signature", "`sha256=`, and HMAC-SHA256 of the body in hex", required=True),
)


def webhook(event: str) -> PathItem:
    body = Schema(
        all_of=[
            reference(events.Envelope),
            Schema(properties={"type": choice(event), "data": reference(DATA[event])}),
        ]
    )
    return PathItem(
        post=Operation(
            tags=["events"],
            summary=event,
            operation_id=f"on_{event.replace('.', '_')}",
            parameters=list(SIGNED),
            request_body=RequestBody({"application/json": OpenAPIMediaType(schema=body)}, required=True),
            responses={
                "2XX": OpenAPIResponse("Taken; 400, 413 and 422 park the event, after all else it is sent again")
            },
        )
    )
