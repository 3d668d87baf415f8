"""How the machine says no: `E:` and its own words, with the status bits of protocol section 1."""

from __future__ import annotations

from functools import lru_cache

SYNTAX_ERROR = 0x01  # byte 0
UNKNOWN_COMMAND = 0x02  # byte 0
GENERAL_ERROR = 0x20  # byte 0
NOT_ALLOWED_NOW = 0x02  # byte 1
INVOICE_OPEN = 0x08  # byte 2


class MachineRefusal(Exception):  # an answer of the machine, not a fault of the program
    """`byte0` and `byte1`: the bits to set in the first two status bytes."""

    def __init__(self, text: str, byte0: int = GENERAL_ERROR, byte1: int = 0) -> None:
        self.text = text
        self.byte0 = byte0
        self.byte1 = byte1
        super().__init__(text)


def bad_syntax(text: str) -> MachineRefusal:
    return MachineRefusal(text, byte0=GENERAL_ERROR | SYNTAX_ERROR)


def unknown_command() -> MachineRefusal:
    return MachineRefusal("Unknown command", byte0=GENERAL_ERROR | UNKNOWN_COMMAND)


def not_now(text: str) -> MachineRefusal:
    return MachineRefusal(text, byte1=NOT_ALLOWED_NOW)


@lru_cache
def status(byte0: int, byte1: int, invoice_open: bool) -> bytes:
    byte2 = INVOICE_OPEN if invoice_open else 0
    return bytes((0x80 | byte0, 0x80 | byte1, 0x80 | byte2, 0x80, 0x80, 0x80))
