"""Errors between the driver and one machine: who is at fault, and in which phase.

    BridgeError
    ├── PortUnavailable   box: the port cannot be opened; `why` has the kind; nothing was sent
    ├── Unsendable        caller: a text that must not be cut does not fit into a frame; it was not sent
    ├── LinkEnded         line: this connection has ended; `sent`: a byte of the command may have been sent
    │   ├── PortVanished  the device disappeared
    │   └── LineDown      no usable answer after all tries, or a command was abandoned
    ├── Refused           machine: it understood and refused (`E:`); `text` in its own words
    ├── UnknownCommand    machine: it is silent at this command and answers others
    └── Nonsense          machine: a valid frame with unreadable content

After LinkEnded with `sent` the effect of the command is unknown. After the last three the line still works.
"""

from typing import Literal

from common.language.reasons import COMMAND_UNKNOWN, PORT_UNAVAILABLE

Why = Literal["missing", "permission", "busy", "other"]


class BridgeError(Exception):
    """Root of all errors of this package."""


class PortUnavailable(BridgeError):
    def __init__(self, path: str, why: Why, detail: str) -> None:
        self.path = path
        self.why = why
        super().__init__(PORT_UNAVAILABLE(port=path, cause=detail))


class Unsendable(BridgeError):
    pass


class LinkEnded(BridgeError):
    def __init__(self, detail: str, *, sent: bool = False) -> None:
        self.detail = detail
        self.sent = sent
        super().__init__(detail)


class PortVanished(LinkEnded):
    pass


class LineDown(LinkEnded):
    pass


class Refused(BridgeError):
    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(f"the machine refused: {text}")


class UnknownCommand(BridgeError):
    def __init__(self, cmd: int) -> None:
        super().__init__(COMMAND_UNKNOWN(command=f"{cmd:02X}h"))


class Nonsense(BridgeError):
    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)
