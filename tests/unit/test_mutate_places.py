"""Which mistakes `make mutate` draws, and which it leaves out because nobody could see them."""

from __future__ import annotations

import pytest
from mutate.mistakes import mistakes


def drawn(text: str) -> list[str]:
    return [mistake.what for mistake in mistakes("x.py", text.encode())]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("if a and not b.c or d is None:\n    log.info('x')\n", []),
        ("if a:\n    _log().warning('x')\nelse:\n    b()\n", ["never: if a", "left out: b()"]),
        ("if a:\n    log.info('x')\n    b()\n", ["never: if a", "left out: b()"]),
        ("if a:\n    b()\n", ["never: if a", "left out: b()"]),
        ("x = field(default=True, init=False)\n", []),
        ("for a, b in zip(c, d, strict=True):\n    pass\n", []),
        ("x = a < 3\n", ["< → <=", "3 → 4"]),
        ("x = clock.time() < y\n", []),
        ("x = self.clock() - y < LIMIT\n", ["- → +"]),
        ("x = now - y < LIMIT\n", ["- → +"]),
        ("x = now < y\n", ["< → <="]),
        ("HOUR = 60 * 60\n", []),
        ("x = f(not a)\n", ["not left out"]),
        ("def f(a: int = 3) -> None:\n    del a\n", []),
        ("class A(Protocol[T]):\n    def f(self):\n        g()\n", []),
        ("class A(HttpToolsProtocol):\n    def f(self):\n        g()\n", ["left out: g()"]),
    ],
)
def test_what_is_drawn(text: str, what: list[str]) -> None:
    """A guard of nothing but a log line, how a class or a signature is made, what others are to offer, two moments of a clock: not; what they stand beside: yes."""
    assert drawn(text) == what
