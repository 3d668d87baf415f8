"""How long a body is by its headers."""

from __future__ import annotations

import pytest

from daemon.api.http.framing import MOST_DIGITS, Unreadable, length_of_body

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
