"""The OpenAPI document as a collection (Postman 2.1), which Postman, Bruno and Insomnia open: every request with its example body."""

from __future__ import annotations

from typing import Any, Final

import msgspec

Json = dict[str, Any]
SCHEMA: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
VARIABLES: Final = {"base": "http://127.0.0.1:8480", "key": "", "nim": "EL02000015-1"}
"""To be filled in once: the box's address, an API key, the machine."""


def collection(openapi: bytes) -> bytes:
    document = msgspec.json.decode(openapi, type=Json)
    folders: dict[str, list[Json]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            folders[operation["tags"][0]].append(_request(path, method.upper(), operation))
    return msgspec.json.encode(
        {
            "info": {
                "name": f"mcfd {document['info']['version']}",
                "schema": SCHEMA,
                "description": document["info"]["description"],
            },
            "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{key}}", "type": "string"}]},
            "variable": [{"key": name, "value": value} for name, value in VARIABLES.items()],
            "item": [{"name": name, "item": requests} for name, requests in folders.items() if requests],
        }
    )


def _request(path: str, method: str, operation: Json) -> Json:
    request: Json = {
        "method": method,
        "header": [],
        "description": operation["description"],
        "url": _url(path, operation),
    }
    if (operation["security"] and {} in operation["security"]) or not operation["security"]:
        request["auth"] = {"type": "noauth"}
    if body := operation.get("requestBody"):
        example = body["content"]["application/json"]["example"]
        request["header"].append({"key": "Content-Type", "value": "application/json"})
        request["body"] = {
            "mode": "raw",
            "raw": msgspec.json.format(msgspec.json.encode(example), indent=2).decode(),
            "options": {"raw": {"language": "json"}},
        }
    if method == "POST" and "{nim}" in path:
        request["header"].append({"key": "Idempotency-Key", "value": "{{$guid}}"})
    return {"name": operation["summary"], "request": request}


def _url(path: str, operation: Json) -> Json:
    """Parameters of the path but the machine's NIM are variables of the request; those of the query are there, switched off."""
    named = [each["name"] for each in operation["parameters"] if each["in"] == "path" and each["name"] != "nim"]
    shown = path.replace("{nim}", "{{nim}}")
    for name in named:
        shown = shown.replace("{" + name + "}", f":{name}")
    query = [
        {"key": each["name"], "value": "", "disabled": True, "description": each.get("description", "")}
        for each in operation["parameters"]
        if each["in"] == "query"
    ]
    return {
        "raw": "{{base}}" + shown,
        "host": ["{{base}}"],
        "path": shown.strip("/").split("/"),
        "query": query,
        "variable": [{"key": name, "value": ""} for name in named],
    }
