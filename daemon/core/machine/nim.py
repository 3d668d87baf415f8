"""A machine's number, with and without its suffix."""

from __future__ import annotations

import re

_SUFFIX = re.compile(r"(?:-[0-9]{1,9})?")


def same_machine(one: str, other: str) -> bool:
    """Compared up to the dash: some firmware leaves out the activation counter (protocol 3)."""
    return short_nim(one) == short_nim(other)


def short_nim(nim: str) -> str:
    """Without the activation counter: `EL02000015-1` is `EL02000015` (protocol 3)."""
    return nim.partition("-")[0]


def is_named(nim: str, machine: str) -> bool:
    """Whether a path's `nim` names that machine: up to the dash, with any activation counter or none (decision 26)."""
    return nim == machine or (same_machine(nim, machine) and _SUFFIX.fullmatch(nim[len(short_nim(nim)) :]) is not None)


def present_nim(answer: str, configured: str, ledger_nim: str) -> str:
    """The machine's name as of now: as it tells it with its activation counter, else as the configuration has it, else as it was."""
    if "-" in answer:
        return answer
    return configured if "-" in configured and same_machine(configured, ledger_nim) else ledger_nim


def new_name(answer: str, configured: str, ledger_nim: str) -> str:
    """The machine's name of now where it is known by another one; else empty."""
    nim = present_nim(answer, configured, ledger_nim)
    return nim if nim != ledger_nim else ""


def activation_of(nim: str) -> int | None:
    """The activation counter in a machine's name; None where there is none."""
    counter = nim.partition("-")[2]
    return int(counter) if counter.isascii() and counter.isdigit() else None
