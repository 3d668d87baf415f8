"""Bad input over real sockets: every refusal leaves the machine and the ledger as they were, and honest tills do not wait."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.shop import NIM, Shop
from support.till import problem, untouched

from daemon.api.service import API_ROUTES

NOTIFIED = json.dumps({"who": "distributor", "reference": "1"}).encode()


def post(shop: Shop, content: bytes, path: str = "certify") -> Any:
    headers = {**shop.headers(), "Content-Type": "application/json"}
    return shop.http.post(f"/v1/mcf/{NIM}/{path}", content=content, headers=headers)


@pytest.mark.parametrize("path", sorted(path for route in API_ROUTES for path in route.paths if ":int}" in path))
def test_a_number_in_a_path_that_no_row_has(shop: Shop, path: str) -> None:
    """404, also beyond 64 bits: nothing of that number is there."""
    methods = next(route.http_methods for route in API_ROUTES if path in route.paths)
    path = re.sub(r"\{\w+:int\}", "9" * 30, path)
    with untouched(shop):
        problem(post(shop, NOTIFIED, path) if "POST" in methods else shop.get(path), 404, "NOT_FOUND")


def test_a_z_with_a_bad_body_closes_nothing(shop: Shop) -> None:
    """400, and no number is used."""
    with untouched(shop):
        problem(post(shop, b"[]", "reports/z"), 400, "INVALID_JSON")


# -- below HTTP ---------------------------------------------------------------------------------------------------------
