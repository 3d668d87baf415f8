"""A machine's number, with and without its suffix, and references to its invoices."""

from __future__ import annotations

import re

_SUFFIX = re.compile(r"(?:-[0-9]{1,9})?")


def same_machine(one: str, other: str) -> bool:
    """Compared up to the dash: some firmware leaves out the activation counter (protocol 3)."""
    return short_nim(one) == short_nim(other)


def short_nim(nim: str) -> str:
    """Without the activation counter: `EL02000015-1` is `EL02000015` (protocol 3)."""
    return nim.partition("-")[0]


_DIGITS = 18
"""No counter has more (protocol 3)."""


def is_named(nim: str, machine: str) -> bool:
    """Whether a path's `nim` names that machine: up to the dash, with any activation counter or none (decision 26)."""
    return nim == machine or (same_machine(nim, machine) and _SUFFIX.fullmatch(nim[len(short_nim(nim)) :]) is not None)


def present_nim(told: str, configured: str, known: str) -> str:
    """The machine's name as of now: as it tells it with its activation counter, else as the configuration has it, else as it was."""
    if "-" in told:
        return told
    return configured if "-" in configured and same_machine(configured, known) else known


def named_machine(reference: str) -> str:
    """The NIM in a credit note's reference, with its activation counter where it has one."""
    return reference.rpartition("-")[0]


def original_fvc(reference: str, nim: str) -> int | None:
    """The FVC of the original when the reference names an invoice of the machine `nim`; None for `RRR`, other machines, and
    what no counter can be."""
    named, _, fvc = reference.rpartition("-")
    if not named or not (fvc.isascii() and fvc.isdigit()) or not same_machine(named, nim):
        return None
    return int(fvc) if len(fvc) <= _DIGITS else None
