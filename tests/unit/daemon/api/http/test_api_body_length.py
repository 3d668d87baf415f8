"""How long a body is by its headers."""

from __future__ import annotations

import pytest

from daemon.api.http.framing import MOST_DIGITS, Unreadable, check_line, length_of_body

HOST = (b"host", b"localhost")
MOST = b"9" * MOST_DIGITS


@pytest.mark.parametrize(
    ("sent", "length"),
    [([], 0), ([b"0"], 0), ([b"2"], 2), ([b"002"], 2), ([b"0" * 5000 + b"2"], 2), ([MOST], int(MOST)), ([b"0" + MOST], int(MOST))],
)  # fmt: skip
def test_a_length_is_one_number(sent: list[bytes], length: int) -> None:
    """Of fifteen digits at the most, zeros before it do not count; none is nothing."""
    assert length_of_body([HOST, *((b"content-length", value) for value in sent)], "1.1") == length


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ([b"1" + MOST], 413), ([b"9" * 5000], 413), ([b""], 400), ([b"+2"], 400), ([b"2 "], 400), ([b"0x2"], 400), ([b"2", b"2"], 400),
        ([b"2", b"3"], 400),
    ],
)  # fmt: skip
def test_any_other_length_is_refused(sent: list[bytes], status: int) -> None:
    """Too much is told as such; what is no number, or two of them, is no request."""
    with pytest.raises(Unreadable) as refused:
        length_of_body([HOST, *((b"content-length", value) for value in sent)], "1.1")
    assert refused.value.status == status


CHUNKED, LENGTH = (b"transfer-encoding", b"chunked"), (b"content-length", b"2")


@pytest.mark.parametrize(
    ("headers", "version", "is_taken"),
    [
        ([HOST, CHUNKED], "1.1", True),
        ([HOST, (b"transfer-encoding", b"Chunked")], "1.1", True),
        ([HOST, CHUNKED, CHUNKED], "1.1", False),
        ([HOST, CHUNKED, (b"transfer-encoding", b"gzip")], "1.1", False),
        ([HOST, (b"transfer-encoding", b"gzip")], "1.1", False),
        ([HOST, CHUNKED, LENGTH], "1.1", False),
        ([HOST, CHUNKED], "1.0", False),
        ([HOST], "1.0", True),
        ([], "1.0", True),
        ([], "1.1", False),
        ([HOST, HOST], "1.1", False),
        ([HOST, HOST], "1.0", False),
    ],
)
def test_nobody_is_in_doubt_where_a_body_ends(headers: list[tuple[bytes, bytes]], version: str, is_taken: bool) -> None:
    """One coding, one host, no length beside a coding: also where llhttp would refuse it first."""
    if is_taken:
        assert length_of_body(headers, version) == (0 if len(headers) < 2 else None)
        return
    with pytest.raises(Unreadable) as refused:
        length_of_body(headers, version)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("method", "target", "version", "is_taken"),
    [
        ("GET", b"/v1/me", "1.1", True),
        ("GET", b"/v1/me", "1.0", True),
        ("GET", b"/v1/me", "2.0", False),
        ("CONNECT", b"/v1/me", "1.1", False),
        ("GET", b"v1/me", "1.1", False),
        ("GET", b"/v1/me#x", "1.1", False),
        ("GET", b"/v1/\xe9", "1.1", False),
    ],
)
def test_what_is_asked_for_is_of_this_server(method: str, target: bytes, version: str, is_taken: bool) -> None:
    """A path, in a version that is spoken here."""
    if is_taken:
        check_line(method, target, version)
        return
    with pytest.raises(Unreadable) as refused:
        check_line(method, target, version)
    assert refused.value.status == 400
