"""What a POST's headers and body are to the use cases."""

import hashlib
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl

import pytest
from litestar.datastructures import MultiDict

from daemon.api.access.context import ApiRequest
from daemon.api.request.body import integer, parse
from daemon.api.request.outcome import call_of
from daemon.api.routes.machine import read_move_of_clock
from daemon.core.audit import Actor, Call
from daemon.core.errors import InvalidRequest

WHO = Actor("key:1", "127.0.0.1")


def call_for(*headers: tuple[bytes, bytes], strict_key: bool = False, body: bytes = b"{}", **scope: Any) -> Call:
    whole = {
        "headers": headers,
        "state": {"request_id": "r-1"},
        "method": "POST",
        "path": "/a",
        "query_string": b"",
        **scope,
    }
    request = SimpleNamespace(
        scope=whole,
        auth=SimpleNamespace(actor=WHO, key=SimpleNamespace(strict=strict_key), expires=0.0),
        route_handler=SimpleNamespace(opt={"queries": {"dry_run", "lang", "from"}, "can_be_tried": True}),
        query_params=MultiDict(parse_qsl(whole["query_string"].decode())),
    )
    return call_of(cast("ApiRequest", request), body, parse(body))


@pytest.mark.parametrize(
    ("sent", "strict"),
    [
        ([], False), ([b"true"], True), ([b" TRUE "], True), ([b"false"], False), ([b"false", b"true"], True),
        ([b""], None), ([b"1"], None), ([b"yes"], None), ([b"true", b"no"], None), ([b"no", b"false"], None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("strict_key", [False, True])
def test_who_asks_for_strictness_has_it(sent: list[bytes], strict: bool | None, strict_key: bool) -> None:
    """By the header or by the key, whichever says so; a value that is neither true nor false is refused with the header's name."""
    headers = [(b"mcfd-strict", value) for value in sent]
    if strict is None:
        with pytest.raises(InvalidRequest) as refused:
            call_for(*headers, strict_key=strict_key)
        assert [error.field for error in refused.value.errors] == ["Mcfd-Strict"]
    else:
        assert call_for(*headers, strict_key=strict_key) == Call("r-1", by=WHO, strict=strict or strict_key)


@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [
        ([b"k"], True), ([b" ~"], True), ([b"k" * 200], True), ([b"k" * 201], False),
        ([b""], False), ([b"\x1f"], False), ([b"\x7f"], False), ([b"\xe9"], False), ([b"k\n"], False), ([b"k", b"k"], False),
    ],
)  # fmt: skip
def test_a_key_is_taken_as_it_was_sent_or_refused(sent: list[bytes], is_taken: bool) -> None:
    """Once, of 1 to 200 printable ASCII characters."""
    headers = [(b"idempotency-key", value) for value in sent]
    if is_taken:
        assert call_for(*headers).key == sent[0].decode()
    else:
        with pytest.raises(InvalidRequest) as refused:
            call_for(*headers)
        assert [error.field for error in refused.value.errors] == ["Idempotency-Key"]


def test_a_fingerprint_is_of_method_path_query_and_body() -> None:
    """Whatever the other headers, the query's order and its unknown parameters are; none without a key."""
    key = (b"idempotency-key", b"k")
    same = call_for(key).fingerprint
    assert len(same) == 16
    assert call_for((b"accept", b"*/*"), key).fingerprint == same
    others = {
        call_for(key, method="PUT").fingerprint,
        call_for(key, path="/b").fingerprint,
        call_for(key, body=b'{"a":1}').fingerprint,
    }
    assert len(others | {same}) == 4
    queries = (b"lang=fr&from=2026-01-01", b"x=1&from=2026-01-01&lang=fr", b"lang=en&from=2026-01-01", b"dry_run=false")
    of_query = [call_for(key, query_string=query).fingerprint for query in queries]
    assert (of_query[0], of_query[3]) == (of_query[1], same)
    assert len({*of_query, same}) == 3
    assert call_for().fingerprint == b""


@pytest.mark.parametrize(
    ("body", "is_same"),
    [
        (b'{"b":[{"d":"\\u00e9","c":1180.5}],"a":1180}', True),
        ('\ufeff{ "a": 1180.0, "b": [ { "c": 118050e-2, "d": "é" } ] }\r\n'.encode(), True),
        (b'{"a":1.18E3,"b":[{"c":1180.50,"d":"\\u00E9"}]}', True),
        (b'{"a":"1180","b":[{"c":1180.5,"d":"\\u00e9"}]}', False),
        (b'{"a":1180,"b":[{"c":"1180.5","d":"\\u00e9"}]}', False),
        (b'{"a":1180,"b":[{"c":1180.51,"d":"\\u00e9"}]}', False),
        (b'{"a":1180,"b":[{"c":1180.5,"d":"e"}]}', False),
        (b'{"a":1180,"b":[{"c":1180.5,"d":"\\u00e9"},{}]}', False),
        (b'{"a":true,"b":[{"c":1180.5,"d":"\\u00e9"}]}', False),
        (b'{"x":null,"a":1180,"b":[{"c":1180.5,"e":null,"d":"\\u00e9"}]}', True),
        (b'{"a":1180,"b":[{"c":1180.5,"d":"\\u00e9"},null]}', False),
    ],
)
def test_a_body_is_the_same_where_its_values_are(body: bytes, is_same: bool) -> None:
    """Whatever the order of names, spaces, spelling and null fields (39): a till that builds it anew sends other bytes."""
    key = (b"idempotency-key", b"k")
    first = call_for(key, body=b'{"a":1180,"b":[{"c":1180.5,"d":"\\u00e9"}]}')
    assert (call_for(key, body=body).fingerprint == first.fingerprint) == is_same


@pytest.mark.parametrize("number", ["1e999999999", "1" * 5000, "1" * 35, "1e400", "0.1e-400", "-0.0"])
def test_a_number_beyond_all_bounds_has_a_fingerprint(number: str) -> None:
    """In a field that is ignored it may stand; the same text is the same request."""
    key, body = (b"idempotency-key", b"k"), f'{{"x":{number}}}'.encode()
    assert call_for(key, body=body).fingerprint == call_for(key, body=body).fingerprint


def test_a_key_of_an_earlier_version_is_found_again() -> None:
    """Up to 0.18.0 the fingerprint was of the bytes of the body; 0.1.0's had the NIM too. In 0.19.0 a null counted."""
    body = b'{"b": 1, "a": 2}'
    call = call_for((b"idempotency-key", b"k"), path="/v1/mcf/EL02000015-1/certify", body=body)
    for path in ("/v1/mcf//certify", "/v1/mcf/EL02000015-1/certify", "/v1/mcf/EL02000015/certify"):
        stored = hashlib.sha256(b"\n".join((b"POST", path.encode(), body))).digest()[:16]
        assert call.is_request(stored), path
    other = hashlib.sha256(b'POST\n/v1/mcf//certify\n{"a": 2}').digest()[:16]
    assert not call.is_request(other)
    null = call_for((b"idempotency-key", b"k"), path="/v1/mcf/EL02000015-1/certify", body=b'{"b": null, "a": 2}')
    assert null.is_request(hashlib.sha256(b'POST\n/v1/mcf//certify\n{"a": 2, "b": null}').digest()[:16])


@pytest.mark.parametrize(
    ("text", "number"), [(None, 100), ("1", 1), ("100", 100), ("0", None), ("101", None), ("1.5", None), ("", None)]
)
def test_a_number_in_a_query_has_its_bounds(text: str | None, number: int | None) -> None:
    query = {} if text is None else {"limit": text}
    if number is not None:
        assert integer(query, "limit", default=100, least=1, most=100) == number
    else:
        with pytest.raises(InvalidRequest, match="limit: has to be a whole number from 1 to 100"):
            integer(query, "limit", default=100, least=1, most=100)


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        ({}, (0, None)),
        ({"hours": 48}, (48, None)),
        ({"days": 2, "hours": 3, "taxServer": "unreachable"}, (51, False)),
        ({"days": 400, "taxServer": "reachable"}, (9600, True)),
        ({"hours": 49}, "hours"),
        ({"days": -1}, "days"),
        ({"days": "x"}, "days"),
        ({"taxServer": "away"}, "taxServer"),
    ],
)
def test_by_how_much_a_sandbox_s_time_is_moved(body: dict[str, object], moved: object) -> None:
    """What is left out is nothing."""
    if isinstance(moved, tuple):
        assert read_move_of_clock(body) == moved
    else:
        with pytest.raises(InvalidRequest, match=str(moved)):
            read_move_of_clock(body)
