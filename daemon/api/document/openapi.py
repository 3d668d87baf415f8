"""The OpenAPI document: Litestar's of the registered routes, with msgspec's schemas of the structs that are sent, and
the requests to a `[[webhook]]`. `/schema` serves the document and its page, without the internet."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Router, get
from litestar.exceptions import NotFoundException
from litestar.openapi import spec
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Schema
from litestar.routes import HTTPRoute

from daemon.api.document.describe import REPLAYED, STRING, choice, header, matching, reference
from daemon.api.http.answers import SCREEN_POLICY, Answer, Header, static_file
from daemon.api.problems import Problem
from daemon.core import events
from daemon.core.events import Envelope
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
"""Type of `data` by type of event."""

SIGNED: Final = (
    header("webhook-id", "The same for the same event: deduplicate by it", required=True),
    header("webhook-timestamp", "Seconds, of this delivery", required=True),
    header("webhook-signature", "Of Standard Webhooks", required=True),
    header("X-Avepay-Signature", "`sha256=`, and HMAC-SHA256 of the body in hex", required=True),
)

INTRODUCTION: Final = """**mcfd** certifies each invoice exactly once on the fiscal machine (MCF) beside this box, and keeps the reports X, Z and A. Every
request carries `Authorization: Bearer <key>`; a key is for one NIM. An `ak_test_…` key works on a simulated machine
(codes `TESTFACT…`), never on the real one. Send an `Idempotency-Key` with every POST: the same request, repeated after a cut,
gets the first answer and is never certified twice.

Amounts are whole XOF. Timestamps are RFC 3339 in UTC. Errors are `application/problem+json`; `code` is what programs
should look at. In a body, `null` says the same as a field that is left out."""

TAGS: Final = {
    "certification": "Invoices and credit notes",
    "reports": "Reports and history",
    "journal": "The electronic journal",
    "paper": "Documents to print",
    "events": "Live events",
    "machine": "The fiscal machine",
    "key": "The key",
    "health": "Monitoring, without a key",
}

HEADERS: Final = {
    "X-Request-ID": ("The request's own, or one made up; it stands in every log line of the request.", STRING),
    REPLAYED: ("`true` when this is the first answer again.", choice("true")),
    "Retry-After": ("Seconds to wait (not with MACHINE_ATTENTION).", matching("^[0-9]+$")),
    "WWW-Authenticate": ("`Bearer`, with what was wrong with the key.", STRING),
}

PACKAGE: Final = "daemon.api.document"
FILES: Final = frozenset({"swagger-ui-bundle.js", "swagger-ui.css", "start.js", "page.css", "favicon.svg"})
"""The only files under `static/` that are served."""

POLICY: Final[Header] = (
    b"content-security-policy",
    SCREEN_POLICY.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'").replace(
        b"form-action 'self'", b"form-action 'none'"
    ),
)
"""Swagger UI needs inline styles; scripts are files of this box only."""


def webhook(event: str) -> spec.PathItem:
    own = Schema(properties={"type": choice(event), "data": reference(DATA[event])})
    body = Schema(all_of=[reference(events.Envelope), own])
    return spec.PathItem(
        post=spec.Operation(
            tags=["events"],
            summary=event,
            operation_id=f"on_{event.replace('.', '_')}",
            parameters=list(SIGNED),
            request_body=spec.RequestBody({"application/json": spec.OpenAPIMediaType(schema=body)}, required=True),
            responses={
                "2XX": spec.OpenAPIResponse("Taken; 400, 413 and 422 park the event, after all else it is sent again")
            },
        )
    )


def document(routers: Sequence[Router], version: str) -> bytes:
    """The document as JSON, made by a separate application, since Litestar would register routes below /schema."""
    app = Litestar(
        list(routers),
        openapi_config=OpenAPIConfig(
            title="mcfd",
            version=version or "0",
            description=INTRODUCTION,
            tags=[spec.Tag(name, text) for name, text in TAGS.items()],
            components=spec.Components(
                headers={
                    name: spec.OpenAPIHeader(schema, description=text) for name, (text, schema) in HEADERS.items()
                },
                security_schemes={
                    "key": spec.SecurityScheme("http", scheme="bearer", bearer_format="ak_live_… / ak_test_…"),
                },
            ),
            webhooks={event: webhook(event) for event in DATA},
            render_plugins=[JsonRenderPlugin()],
        ),
        logging_config=None,
    )
    openapi = app.openapi_schema.to_schema()
    # Litestar's schemas of structs lose their descriptions, and say that a whole number is two things at once.
    openapi["components"]["schemas"] = _schemas(app)
    return msgspec.json.encode(openapi)


def _schemas(app: Litestar) -> dict[str, Any]:
    types = dict.fromkeys((Problem, Envelope, *DATA.values(), *_types(app)))
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    _adapt(schemas)
    return schemas


def _types(app: Litestar) -> Iterator[type]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                yield from handler.opt.get("types", ())


def _adapt(node: object) -> None:
    """Changes the type of decimals to number, as they are sent (`answers`); msgspec's schema has strings."""
    if isinstance(node, dict):
        if node.get("format") == "decimal":
            del node["format"]
            node["type"] = "number"
        for below in node.values():
            _adapt(below)
    elif isinstance(node, list):
        for below in node:
            _adapt(below)


@get("/schema")
async def page(request: Request[Any, Any, Any]) -> Answer:
    return static_file(request.scope, PACKAGE, "page.html", POLICY)


@get(["/openapi.json", "/schema/openapi.json"])
async def openapi(request: Request[Any, Any, Any]) -> Answer:
    """Serves the document; made in a thread, since the first time takes a tenth of a second."""
    return Answer(await asyncio.to_thread(request.app.state["openapi"]))


@get("/schema/{name:str}")
async def asset(request: Request[Any, Any, Any]) -> Answer:
    name = request.path_params["name"]
    if name not in FILES:
        raise NotFoundException
    return static_file(request.scope, PACKAGE, name)
