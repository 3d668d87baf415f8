import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

_AT = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")


class NatsError(Exception):
    """The server cannot be used now, or refuses."""


class NoAnswer(NatsError):
    """No answer in time."""


class ConnectionLost(NatsError):
    """The connection has ended."""


class Denied(NatsError):
    """This key may not publish on that subject. Concerns that request only; the connection stays open."""


class NoResponders(NatsError):
    """The subject has no subscriber."""


class MessageTooLarge(NatsError):
    """More bytes, headers included, than the server accepts in one message. Nothing was sent."""


class NotNats(NatsError):
    """The other side does not speak the protocol."""


class BadEvent(ValueError):
    """A message does not match its format. `field` is the path of the wrong field, empty for the whole message."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


class BadQuery(BadEvent):
    """A parameter of a request is invalid (422)."""


def decoded(content: bytes | str, shape: type[T], within: str = "") -> T:
    """The JSON as `shape`. Raises BadEvent, naming the field, for any other content."""
    try:
        return msgspec.json.decode(content, type=shape)
    except msgspec.MsgspecError as error:
        raise _bad(str(error), within) from None
    except (
        UnicodeError,
        RecursionError,
    ) as error:  # not caught by msgspec: invalid UTF-8, deeply nested brackets
        raise BadEvent(within, f"is not JSON ({type(error).__name__})") from None


def _bad(text: str, within: str) -> BadEvent:
    at = _AT.search(text)
    path = ".".join(part for part in (within, at[1] if at else "") if part)
    return BadEvent(path, text[: at.start()] if at else text)
