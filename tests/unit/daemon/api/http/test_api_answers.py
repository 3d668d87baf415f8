"""An answer as it is handed to the server."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.api.http.answers import PIECE, Answer


@pytest.mark.parametrize(
    ("size", "pieces"),
    [
        (0, [(0, False)]),
        (1, [(1, False)]),
        (PIECE, [(PIECE, False)]),
        (PIECE + 1, [(PIECE, True), (1, False)]),
        (2 * PIECE, [(PIECE, True), (PIECE, False)]),
        (2 * PIECE + 5, [(PIECE, True), (PIECE, True), (5, False)]),
    ],
)
async def test_an_answer_goes_out_in_pieces(size: int, pieces: list[tuple[int, bool]]) -> None:
    """Of 64 KiB, the last of which ends it; one without a body ends at once."""
    body = bytes(at % 251 for at in range(size))
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    not_looked_at: Any = None
    await Answer(body, status=201)(not_looked_at, not_looked_at, send)
    start, *rest = messages
    assert (start["type"], start["status"], dict(start["headers"])[b"content-length"]) == (
        "http.response.start",
        201,
        b"%d" % size,
    )
    assert [(len(each["body"]), each["more_body"]) for each in rest] == pieces
    assert b"".join(each["body"] for each in rest) == body
