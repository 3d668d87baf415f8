"""Certify invoices through mcfd. See README.md."""

from avepay_mcf.client import Mcf
from avepay_mcf.errors import (
    Answered,
    CreditExceedsOriginal,
    DuplicateInvoice,
    InvalidRequest,
    MachineRefused,
    McfError,
    NeedsAPerson,
    NoAnswer,
    NotAllowed,
    Refused,
)
from avepay_mcf.shapes import (
    FieldFault,
    Preview,
    Problem,
    Receipt,
    RequestState,
    TaxDetail,
    Warned,
)

__all__ = [
    "Answered",
    "CreditExceedsOriginal",
    "DuplicateInvoice",
    "FieldFault",
    "InvalidRequest",
    "MachineRefused",
    "Mcf",
    "McfError",
    "NeedsAPerson",
    "NoAnswer",
    "NotAllowed",
    "Preview",
    "Problem",
    "Receipt",
    "Refused",
    "RequestState",
    "TaxDetail",
    "Warned",
]
