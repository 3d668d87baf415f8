"""What is refused before any use case; `problems.py` says how each is answered."""

from __future__ import annotations

from typing import ClassVar

from common.language import Text
from daemon.core.keys import Lane
from daemon.core.people import Right, Role, roles_with


class Refusal(Exception):
    """`detail` goes to the client; a class has its own where it is always the same."""

    detail: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.detail)


class InvalidJson(Refusal):
    """What came is no JSON."""


class Unauthenticated(Refusal):
    """`challenge` is the `error` of RFC 6750, empty when no key was sent at all."""

    def __init__(self, detail: str, challenge: str = "invalid_token") -> None:
        self.challenge = challenge
        super().__init__(detail)


class NimNotInScope(Refusal):
    detail = Text("this key is not for the NIM in the path")


class RoleNotAllowed(Refusal):
    def __init__(self, role: Role, right: Right) -> None:
        super().__init__(
            Text(
                "this needs the role {choices}; this key is a {role}'s",
                choices=" or ".join(roles_with(right)),
                role=role,
            )
        )


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
    """Does not say whether there is such a name."""

    detail = Text("the name or the password is wrong")


class BodyTimeout(Refusal):
    detail = Text("the body did not arrive in time; nothing was done")


class TooLarge(Refusal):
    """More than a body may have."""


class UnsupportedMediaType(Refusal):
    """A body of another kind than JSON."""


class Misdirected(Refusal):
    detail = Text("this box does not answer to the name in the Host header (server.allowed_hosts)")


class TooManyRequests(Refusal):
    """`retry_after` in seconds."""

    def __init__(self, detail: str, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(detail)
