"""Errors before any use case; `problems.py` has the answer to each."""

from typing import ClassVar

from common.language import Text
from daemon.core.keys import Lane
from daemon.core.people import Right, Role, roles_with


class Refusal(Exception):
    """`detail` is sent to the client; a class attribute if it is always the same."""

    detail: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.detail)


class InvalidJson(Refusal):
    """The body is no JSON."""


class Unauthenticated(Refusal):
    """`challenge`: the `error` of RFC 6750, empty if no key was sent."""

    def __init__(self, detail: str, challenge: str = "invalid_token") -> None:
        self.challenge = challenge
        super().__init__(detail)


class NimNotInScope(Refusal):
    detail = Text("this key is not for the NIM in the path")


class RoleNotAllowed(Refusal):
    def __init__(self, role: Role, right: Right) -> None:
        choices = " or ".join(roles_with(right))
        super().__init__(Text("this needs the role {choices}; this key is a {role}'s", choices=choices, role=role))


class WrongLane(Refusal):
    def __init__(self, lane: Lane) -> None:
        super().__init__(
            Text("this key is for the relay alone; on the shop's network it is not valid")
            if lane == "relay"
            else Text(
                "this key is for the shop's network; through the relay it is not valid (mcfd keys create --via relay)"
            )
        )


class NotRelayed(Refusal):
    detail = Text("this is not passed on by the relay; ask the box on the shop's network")


class WrongPassword(Refusal):
    """The name or the password is wrong; the message does not tell which."""

    detail = Text("the name or the password is wrong")


class BodyTimeout(Refusal):
    detail = Text("the body did not arrive in time; nothing was done")


class TooLarge(Refusal):
    """The body exceeds its limit."""


class UnsupportedMediaType(Refusal):
    """The body's content type is not JSON."""


class Misdirected(Refusal):
    detail = Text("this box does not answer to the name in the Host header (server.allowed_hosts)")


class TooManyRequests(Refusal):
    """`retry_after` in seconds."""

    def __init__(self, detail: str, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(detail)
