import copy
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, get_args

import jsonschema
import msgspec
import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from support.api import INVOICE, Ring, Served
from support.core_samples import DEFAULTS, read, record

from common.front_config import ERRORS as FRONT_ERRORS
from daemon.api.access.context import ApiDeps
from daemon.api.document.describe import EmptyBody
from daemon.api.document.openapi import DATA
from daemon.api.problems import HTTP_CODES, KINDS, problem_answer
from daemon.api.request.outcome import IDLE_HEADERS
from daemon.api.routes.calendar import EXAMPLE as CASH_EXAMPLE
from daemon.api.routes.calendar import read_period
from daemon.api.routes.certify import CREDIT_NOTE_EXAMPLE, INVOICE_EXAMPLE
from daemon.api.routes.machine import read_move_of_clock
from daemon.api.routes.outages import EXAMPLE as NOTIFIED_EXAMPLE
from daemon.api.routes.reports import read_closing
from daemon.api.service import create_api
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.events import CERTIFIED, CLOSURE, TEST, MachineEvent, OutageEvent, RequestEvent
from daemon.core.invoice.unknown import CODE as UNKNOWN_FIELD
from daemon.core.ledger.attempt import WARNING as TEST_MODE
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.report.acts import read_move
from daemon.core.report.outages import read_notice
from daemon.core.report.receipt import receipt
from daemon.settings.model import EventType
from daemon.usecases.worker.machine_workers import MachineWorkers

REFERENCE = "EL02000015-1-291"
CREDIT = {"invoiceType": "FA", "creditNoteRef": REFERENCE}
OUTSIDE = re.compile(rb"(?:https?:)?//[\w.-]+\.[a-z]{2,}", re.IGNORECASE)


@pytest.fixture(scope="module")
def app() -> Litestar:
    return create_api(ApiDeps(workers=MachineWorkers([]), keyring=Ring(), timezone="UTC", clock=lambda: 0, version="1"))


@pytest.fixture(scope="module")
def document(app: Litestar) -> dict[str, Any]:
    """Drawn once, which takes half a second; nothing changes it."""
    return msgspec.json.decode(app.state["openapi"]())


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for below in node.values():
            yield from walk(below)
    elif isinstance(node, list):
        for below in node:
            yield from walk(below)


def resolver(document: dict[str, Any], name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    )


def test_the_document_is_openapi(app: Litestar, document: dict[str, Any]) -> None:
    """Every schema and reference holds, every route is in it, and every field is explained."""
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        for field, text in schema["properties"].items():
            assert text.get("description"), (name, field)
    for node in walk(document):
        if "$ref" in node:
            assert reduce(getitem, node["$ref"].removeprefix("#/").split("/"), document)
    routes = {
        (route.path_format, method.lower())
        for route in app.routes
        if isinstance(route, HTTPRoute) and not route.path.startswith(("/schema", "/openapi.json"))
        for handler in route.route_handlers
        for method in handler.http_methods
        if method != "OPTIONS"
    }
    assert {(path, method) for path, method, _ in operations(document)} == routes


def codes_of(document: dict[str, Any]) -> set[str]:
    """Those that are known; no enum, which a generated client would take for all there will ever be."""
    code = document["components"]["schemas"]["Problem"]["properties"]["code"]
    assert "enum" not in code
    return set(re.findall("[A-Z_]{6,}", code["description"]))


def test_every_response_is_described(document: dict[str, Any]) -> None:
    """Each operation says what may come: a description, the request's id, a schema; each problem names its codes."""
    for path, method, operation in operations(document):
        assert operation["summary"]
        assert operation["description"]
        for status, response in operation["responses"].items():
            where = (path, method, status)
            assert response["description"], where
            assert "X-Request-ID" in response["headers"], where
            kind, content = next(iter(response["content"].items()))
            if kind == "application/problem+json":
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}, where
                named = set(re.findall(r"`([A-Z_]{6,})`: \S", response["description"]))
                assert named, where
                assert named <= codes_of(document), where
            elif kind == "application/json":
                assert all(one["$ref"] for one in content["schema"].get("oneOf", [content["schema"]])), where
            else:
                assert content["schema"]["type"] == "string", where


def test_each_code_of_the_table_is_somewhere(document: dict[str, Any]) -> None:
    """So is each header that goes with it."""
    content = set(re.findall(r"[A-Z_]{6,}", repr(document["paths"])))
    codes = {kind.code for kind in KINDS.values()} | {code for code, _ in HTTP_CODES.values()}
    codes |= {code for code, _, _ in FRONT_ERRORS.values()}
    assert codes_of(document) == codes
    assert codes - content == {"WRONG_PASSWORD", "METHOD_NOT_ALLOWED"}  # of the shop's page, and of no operation
    certify = document["paths"]["/v1/mcf/{nim}/certify"]["post"]["responses"]
    assert {int(status) for status in certify} == {
        200, 202, 400, 401, 403, 404, 408, 409, 410, 413, 415, 421, 422, 429, 500, 502, 503, 504, 507,
    }  # fmt: skip
    storing = {path for path, _, operation in operations(document) if "507" in operation["responses"]}
    papers = ("certifications/{code}", "reports/x", "reports/a", "reports/articles")  # each an entry of the journal
    assert {f"/v1/mcf/{{nim}}/{paper}/{way}" for paper in papers for way in ("ticket", "print")} <= storing
    assert "WWW-Authenticate" in certify["401"]["headers"]
    assert "Retry-After" in certify["429"]["headers"]
    assert "Retry-After" in certify["503"]["headers"]
    assert "Idempotency-Replayed" in certify["200"]["headers"]


def test_each_code_of_a_warning_is_described(document: dict[str, Any]) -> None:
    """A till branches on it; the codes in the sources are those of the document."""
    sources = "".join(path.read_text() for path in (Path(__file__).parents[5] / "daemon").rglob("*.py"))
    codes = set(re.findall(r'\b_?(?:Warn|warn|Adjustment)\(\s*"([A-Z_]+)"', sources))
    headers = {f"{name}_HEADER_IGNORED" for name in IDLE_HEADERS}
    text = document["components"]["schemas"]["Adjustment"]["properties"]["code"]["description"]
    assert set(re.findall("[A-Z_]{6,}", text)) == codes | headers | {UNKNOWN_FIELD, TEST_MODE}
    assert len(codes) > 12


def test_answers_of_haproxy_are_described(document: dict[str, Any]) -> None:
    """HAProxy stands before a box on a network. It answers any operation itself, as while the daemon restarts."""
    for path, _, operation in operations(document):
        for status, (code, _, _) in FRONT_ERRORS.items():
            if (path, status) != ("/health/ready", 503):  # its own answer
                response = operation["responses"][str(status)]
                assert f"`{code}`: " in response["description"], (path, status)
                assert ("Retry-After" in response["headers"]) == (status in {429, 503}), (path, status)


def test_a_key_against_repeats_is_asked_for_where_it_is_read(document: dict[str, Any]) -> None:
    """Where an invoice, a closure or cash would count twice; nowhere else. Their answers say whether they are repeated."""
    queries = set()
    for path, _, operation in operations(document):
        if any(each["name"] == "Idempotency-Key" and each["required"] for each in operation["parameters"]):
            queries.add(path.rpartition("}")[2])
            answer = next(iter(status for status in operation["responses"] if status.startswith("2")))
            assert "Idempotency-Replayed" in operation["responses"][answer]["headers"]
    closures = {f"/reports/{name}" for name in ("z", "articles", "month", "year")}
    assert queries == {*closures, "/certify", "/credit-note", "/cash", "/cancel-pending"}


def test_keys_are_asked_for_where_they_are(document: dict[str, Any]) -> None:
    """Bearer everywhere but for /health; /metrics takes one from elsewhere than this box."""
    calls: dict[str, list[Any]] = {
        "/health/live": None,
        "/health/ready": None,
        "/metrics": [{}, {"key": []}],
        "/f/{address}": None,
    }
    for path, _, operation in operations(document):
        assert operation.get("security") == calls.get(path, [{"key": []}])
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_the_examples_fit(document: dict[str, Any]) -> None:
    """Of requests, and what is really answered: a receipt, problems with all their members."""
    resolver(document, "CertifyBody").validate(INVOICE_EXAMPLE)
    resolver(document, "CertifyBody").validate(INVOICE)
    resolver(document, "CreditNoteBody").validate(CREDIT_NOTE_EXAMPLE)
    resolver(document, "Receipt").validate(json.loads(msgspec.json.encode(receipt(record()))))
    for trouble in (DuplicateInvoice(record()), InvalidRequest([FieldError("a", "b")])):
        resolver(document, "Problem").validate(msgspec.json.decode(problem_answer(trouble, "r").body))


WHOLE_INVOICE: dict[str, Any] = {
    **INVOICE_EXAMPLE,
    "items": [
        {
            "name": "Riz 25 kg",
            "taxGroup": "B",
            "itemType": "LOCBIE",
            "taxRate": 18,
            "unitPrice": 15000,
            "quantity": 1,
            "amountTtc": 15000,
            "specificTax": 0,
            "specificTaxRate": 0,
            "specificTaxDesc": "none",
            "code": "R25",
            "unit": "sac",
            "discount": 0,
            "originalPrice": 16000,
            "category": "Céréales",
            "psvbGroup": "A",
        }
    ],
    "comments": [{"text": "Merci", "label": "A"}],
    "customer": {
        "clientType": "CC",
        "ifu": "00012345A",
        "name": "Awa",
        "address": "Ouaga",
        "phone": "70000000",
        "email": "awa@example.bf",
        "rccm": "BF-OUA-2020",
    },
    "priceMode": "TTC",
    "operatorId": "7",
    "operatorName": "Awa",
    "isf": "1",
    "psvbGroup": "A",
    "stampDuty": 0,
}
BODIES: dict[str, tuple[dict[str, Any], Callable[[Any], object]]] = {
    "CertifyBody": (WHOLE_INVOICE, read),
    "CreditNoteBody": (
        {**CREDIT_NOTE_EXAMPLE, **WHOLE_INVOICE, **CREDIT, "originalInvoiceNumber": "F-1"},
        lambda body: read({**body, "creditNoteRef": body.get("creditNoteRef") or REFERENCE}, credit=True),
    ),
    "CashBody": (
        {**CASH_EXAMPLE, "operatorId": "7", "operatorName": "Awa"},
        lambda body: read_move(body, defaults=DEFAULTS, strict=True),
    ),
    "ClockBody": ({"days": 8, "hours": 2, "taxServer": "unreachable"}, read_move_of_clock),
    "NotifiedBody": (
        {**NOTIFIED_EXAMPLE},
        lambda body: read_notice(body, since=0, now=1 << 45, strict=True),
    ),
    "CalendarBody": ({"period": "2026-01"}, read_period),
    "ClosePeriodBody": ({"cashCounted": 15_000, "afterZ": 4}, read_closing),
}
"""Each body with all of its fields, and who reads it."""
INNER = {"items": "ItemBody", "payments": "PaymentBody", "customer": "CustomerBody", "comments": "CommentBody"}


def places(node: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """The way to each field of an object, at any depth."""
    if isinstance(node, dict):
        for name, below in node.items():
            yield (*above, name)
            yield from places(below, *above, name)
    elif isinstance(node, list):
        for index, below in enumerate(node):
            yield from places(below, *above, index)


def outcome(reader: Callable[[Any], object], body: dict[str, Any]) -> object:
    """What is read, or None for a refusal."""
    try:
        return reader(body)
    except InvalidRequest:
        return None


@pytest.mark.parametrize("name", BODIES)
def test_null_is_a_field_that_is_left_out(document: dict[str, Any], name: str) -> None:
    """Permitted where the field may be left out and only there; read the same, as with the default that the document names."""
    whole, reader = BODIES[name]
    schema = resolver(document, name)
    schema.validate(whole)
    result = document["components"]["schemas"]
    tried = set()
    for *above, field in places(whole):
        nulled, without = copy.deepcopy(whole), copy.deepcopy(whole)
        reduce(getitem, above, nulled)[field] = None
        del reduce(getitem, above, without)[field]
        default = result[INNER[str(above[0])] if above else name]["properties"][field].get("default")
        if default is not None:
            named = copy.deepcopy(whole)
            reduce(getitem, above, named)[field] = default
            assert outcome(reader, named) == outcome(reader, without), (above, field)
        tried.add(field)
        assert schema.is_valid(nulled) is schema.is_valid(without), (above, field)
        assert outcome(reader, nulled) == outcome(reader, without), (above, field)
        assert schema.is_valid(nulled) is (outcome(reader, nulled) is not None), (above, field)
    inner = INNER if "items" in whole else {}
    assert tried == {field for each in (name, *inner.values()) for field in result[each]["properties"]}
    bodies = {
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for _, _, operation in operations(document)
        if "requestBody" in operation
    }
    assert bodies == {*BODIES, EmptyBody.__name__}


def test_a_whole_number_may_be_written_with_decimals() -> None:
    """As PHP does for a float; the schema's integer is that too. Nought is permitted, and a fault does not say otherwise."""
    assert read_closing({"cashCounted": Decimal("15000.0")}) == (15_000, None)
    assert read_move_of_clock({"days": Decimal("1e0"), "hours": Decimal("2.00")}) == (26, None)
    with pytest.raises(InvalidRequest, match="0 or more"):
        read_closing({"cashCounted": -1})


def test_what_is_posted_to_webhooks_is_described(document: dict[str, Any]) -> None:
    """Every event that a `[[webhook]]` may ask for, with what its data is, and that of `mcfd webhook test`."""
    assert document["webhooks"].keys() == {*get_args(EventType), TEST}
    for event, path in document["webhooks"].items():
        content = path["post"]["requestBody"]["content"]["application/json"]
        schema = jsonschema.Draft202012Validator({**content["schema"], "components": document["components"]})
        data: Any = receipt(record()) if event == CERTIFIED else MachineEvent(nim="N", mode="live", at="T")
        if DATA[event] is RequestEvent:
            data = RequestEvent(
                nim="N", mode="live", at="T", invoice_number="F", invoice_type="FV", total_ttc=1, request_id="R"
            )
        if DATA[event] is OutageEvent:
            data = OutageEvent(nim="N", mode="live", at="T", outage=1, from_="T", reason="line_lost")
        body = {
            "type": event,
            "timestamp": "T",
            "nim": "N",
            "mode": "live",
            "data": json.loads(msgspec.json.encode(data)),
        }
        assert schema.is_valid(body) is (event != CLOSURE), event
        assert not schema.is_valid({**body, "type": "other"})


async def test_the_page_works_without_internet(served: Served) -> None:
    """It names no address outside, everything it names is here, and its policy allows nothing else."""
    page = await served.client.get("/schema")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert not OUTSIDE.search(policy.encode())
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(named) >= 5
    for address in named:
        answer = await served.client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert not OUTSIDE.search(page.content)
    assert not OUTSIDE.search((await served.client.get("/schema/start.js")).content)
    assert not OUTSIDE.search((await served.client.get("/schema/page.css")).content)
    document = (await served.client.get("/schema/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    assert (await served.client.get("/openapi.json")).json() == document


@pytest.mark.parametrize("name", ["README.md", "page.html", "..%2f..%2fservice.py", "%2e%2e", "swagger-ui.css.map"])
async def test_only_the_page_s_own_files_are_given(served: Served, name: str) -> None:
    """Nothing else of the directory, nothing above it; an unchanged one is not sent twice, by its ETag."""
    assert (await served.client.get(f"/schema/{name}")).status_code == 404
    first = await served.client.get("/schema/swagger-ui.css")
    again = await served.client.get("/schema/swagger-ui.css", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
