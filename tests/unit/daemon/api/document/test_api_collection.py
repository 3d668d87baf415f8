"""The collection for Postman and its like holds every request of the OpenAPI document, ready to send."""

import asyncio
import json

from daemon.api.access.context import ApiDeps
from daemon.api.service import create_api


class Nobody:
    def find(self, _):
        return None

    def get(self, *_):
        return None

    def all(self):
        return ()


def test_every_operation_is_a_request_with_its_example():
    """One for each path and method, in the folder of its tag; bodies are JSON, a POST at a machine has an Idempotency-Key, and nothing is
    left of a path's braces."""
    app = create_api(ApiDeps(workers=Nobody(), keyring=Nobody(), timezone="UTC", clock=lambda: 0, version="1.2"))
    openapi = json.loads(asyncio.run(app.state["openapi"].get()))
    made = json.loads(asyncio.run(app.state["collection"].get()))
    requests = [item["request"] for folder in made["item"] for item in folder["item"]]
    assert len(requests) == sum(len(methods) for methods in openapi["paths"].values())
    for request in requests:
        raw = request["url"]["raw"].replace("{{base}}", "").replace("{{nim}}", "N")
        assert "{" not in raw
        if "body" in request:
            assert isinstance(json.loads(request["body"]["raw"]), dict)
        keyed = any(header["key"] == "Idempotency-Key" for header in request["header"])
        assert keyed == (request["method"] == "POST" and "{{nim}}" in request["url"]["raw"])
    certify = next(request for request in requests if request["url"]["raw"].endswith("/certify"))
    assert json.loads(certify["body"]["raw"])["invoiceType"] == "FV"
    assert {variable["key"] for variable in made["variable"]} == {"base", "key", "nim"}
