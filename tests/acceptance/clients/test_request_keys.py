"""What was given as an Idempotency-Key is found again under `requests/`, percent-encoded (RFC 3986)."""

import http.client
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from support.shop import NIM, invoice, running_shop
from support.till import certified, fresh

KEYS = (
    *("/", "//", "a/", "/a", "a//b", ".", "..", "../..", "a/../b", "/ticket", "x/ticket", "/requests/"),
    *(
        "%",
        "%2F",
        "%zz",
        "100%",
        "?",
        "a?b=c",
        "#",
        "a#b",
        "a b",
        "a  b",
        "+",
        "&=;,",
        "\\",
        '"',
        "'",
        "<>",
        "{}|^`~",
        "~",
    ),
    "k" * 200,
)


@pytest.mark.parametrize("proxy", ["never", "always"])
def test_each_key_is_found_again(tmp_path: Path, proxy: str) -> None:
    """By the letter, also a slash at the end, and through HAProxy; one that is too long, or not of ASCII, was never taken."""
    with running_shop(tmp_path, config={"server": {"proxy": proxy}}) as shop:
        with closing(http.client.HTTPConnection("127.0.0.1", shop.port)) as connection:
            for key in KEYS:
                sale = certified(shop.certify(invoice(fresh(), 500), key=key, mode="test"))
                path = f"/v1/mcf/{NIM}/requests/{quote(key, safe='')}"
                connection.request("GET", path, headers=shop.headers("test"))
                answer = connection.getresponse()
                body = answer.read()
                assert (answer.status, sale["codeSecef"].encode() in body) == (200, True), (key, body)
        for key in ("k" * 201, "k" * 255, "é".encode()):
            headers = {**shop.headers("test"), "Idempotency-Key": key}
            answer = shop.http.post(f"/v1/mcf/{NIM}/certify", json=invoice(fresh(), 500), headers=headers)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
