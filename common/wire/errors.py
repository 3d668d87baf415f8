from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

_AT = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")


class NatsError(Exception):
    """The server cannot be used now, or refuses."""


class NoAnswer(NatsError):
    """Nothing came in time."""


class ConnectionLost(NatsError):
    """The connection has ended."""


class Denied(NatsError):
    """This key may not publish on that subject. Of that request alone; the connection goes on."""


class NoResponders(NatsError):
    """No one subscribes to that subject."""


class MessageTooLarge(NatsError):
    """More bytes, headers included, than the server takes in one message. Nothing was sent."""


class NotNats(NatsError):
    """What answers does not speak the protocol."""


class BadEvent(ValueError):
    """What came is not what it says it is. `field` is the path of what is wrong, empty for the whole."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


def decoded(content: bytes | str, shape: type[T], within: str = "") -> T:
    """The JSON as that type; BadEvent, naming the field, for everything that it may be instead."""
    try:
        return msgspec.json.decode(content, type=shape)
    except msgspec.MsgspecError as error:
        raise _bad(str(error), within) from None
    except (
        UnicodeError,
        RecursionError,
    ) as error:  # what msgspec lets through: bytes that are no text, a tower of brackets
        raise BadEvent(within, f"is not JSON ({type(error).__name__})") from None


def _bad(text: str, within: str) -> BadEvent:
    at = _AT.search(text)
    path = ".".join(part for part in (within, at[1] if at else "") if part)
    return BadEvent(path, text[: at.start()] if at else text)
