"""What a credit note refers to: `<NIM>-<FVC of the original>`, or `RRR` for no one invoice."""

from __future__ import annotations

from daemon.core.settlement import same_machine


def own_fvc(reference: str, nim: str) -> int | None:
    """The FVC of the original when the reference names an invoice of the machine `nim`; None for `RRR` and other machines."""
    named, _, fvc = reference.rpartition("-")
    if not named or not (fvc.isascii() and fvc.isdigit()) or not same_machine(named, nim):
        return None
    return int(fvc)
