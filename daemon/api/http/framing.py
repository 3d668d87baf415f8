"""What a request may look like, beyond what llhttp refuses by itself (RFC 9112): where one ends must never be in doubt."""

from __future__ import annotations

from daemon.api.http.answers import Headers

MOST_DIGITS = 15
"""Of a Content-Length; Python itself refuses to read thousands of them."""


class Unreadable(Exception):
    """A request that nobody can answer as what it is."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def check_line(method: str, target: bytes, version: str) -> None:
    """Unreadable unless it asks this server for something of its own: no proxy's target, no other protocol's version."""
    if version not in {"1.0", "1.1"}:
        raise Unreadable(400, f"HTTP/{version} is not spoken here")
    if method == "CONNECT":
        raise Unreadable(400, "this is no proxy")
    if not target.startswith(b"/") or b"#" in target or not target.isascii():
        raise Unreadable(400, "the request target has to be a path")


def length_of_body(headers: Headers, version: str) -> int | None:
    """In bytes; None for a chunked one, which tells its end itself. Names are lower case."""
    hosts, lengths, codings = 0, [], []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings.append(value)
    if hosts > 1 or (hosts == 0 and version != "1.0"):
        raise Unreadable(400, "the Host header has to be there once")
    if codings:
        if lengths or version == "1.0" or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise Unreadable(400, "a Transfer-Encoding other than chunked, or with a Content-Length, is not taken")
        return None
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise Unreadable(400, "the Content-Length has to be one number")
    digits = lengths[0].lstrip(b"0") if lengths else b""  # `int` takes no more than 4300 of them, zeros too
    if len(digits) > MOST_DIGITS:
        raise Unreadable(413, "the Content-Length is beyond anything that is taken")
    return int(digits or b"0")
