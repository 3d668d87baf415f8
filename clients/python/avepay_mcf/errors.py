"""What may go wrong, by what the till has to do. What a retry solves is no error: the client repeats it by itself."""

from __future__ import annotations

from avepay_mcf.shapes import FieldFault, Problem, Receipt

FOR_A_PERSON = {
    "BOX_AMBIGUOUS",
    "MACHINE_ATTENTION",
    "PAIR_NOT_COMPARED",
    "LEDGER_DAMAGED",
    "Z_NUMBER_UNKNOWN",
    "BRIDGE_ERROR",
    "INTERNAL_ERROR",
}


class McfError(Exception):
    """Root of all of them."""


class NoAnswer(McfError):
    """Not known yet within the client's patience. Send the same again later with the same key: it is certified at most once."""

    def __init__(self, key: str, last: str) -> None:
        self.key = key
        super().__init__(f"no answer yet ({last}); send the same again with the key {key!r}")


class Answered(McfError):
    """mcfd said no, and nothing was certified by this request."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(f"{problem.code}: {problem.detail}")

    @property
    def code(self) -> str:
        return self.problem.code


class NeedsAPerson(Answered):
    """Stop selling, and call who looks after the box."""


class NotAllowed(Answered):
    """Another key is needed."""


class Refused(Answered):
    """The request has to be corrected, and sent with a new key."""


class InvalidRequest(Refused):
    @property
    def errors(self) -> tuple[FieldFault, ...]:
        return self.problem.errors


class MachineRefused(Refused):
    """In the machine's own words."""


class DuplicateInvoice(Refused):
    @property
    def certification(self) -> Receipt | None:
        """What the number stands for: this sale, or another one."""
        return self.problem.certification


class CreditExceedsOriginal(Refused):
    """Both sums are in `problem`."""


_BY_CODE: dict[str, type[Answered]] = {
    "INVALID_REQUEST": InvalidRequest,
    "MACHINE_REFUSED": MachineRefused,
    "DUPLICATE_INVOICE": DuplicateInvoice,
    "CREDIT_EXCEEDS_ORIGINAL": CreditExceedsOriginal,
}


def error_of(problem: Problem, status: int) -> Answered:
    """A code of a later mcfd is judged by its status."""
    if problem.code in FOR_A_PERSON:
        return NeedsAPerson(problem)
    if found := _BY_CODE.get(problem.code):
        return found(problem)
    if status in (401, 403):
        return NotAllowed(problem)
    return NeedsAPerson(problem) if status >= 500 else Refused(problem)  # noqa: PLR2004  # a status
