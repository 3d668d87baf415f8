"""A sentence with a code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from common.language import Text, sentence


class Reason(Text):
    """`code` in snake case, unique; the message is English and names its values in braces."""

    __slots__ = ("code",)

    code: str

    def __new__(cls, code: str, message: str, /, **values: object) -> Self:
        reason = super().__new__(cls, message, **values)
        reason.code = code
        return reason

    def __call__(self, **values: object) -> Reason:
        return Reason(self.code, self.message, **values)

    def codes(self) -> Iterator[str]:
        """Its own, then those of the reasons among its values."""
        yield self.code
        for value in self.values.values():
            cause = sentence(value) if isinstance(value, Exception) else value
            if isinstance(cause, Reason):
                yield from cause.codes()
