"""A till on a client that openapi-python-client generated (`mcfd_generated`): checked by mypy --strict, and run."""

import json
import sys
import time

from mcfd_generated import AuthenticatedClient
from mcfd_generated.api.certification import certify_credit_note, certify_invoice, get_request, withdraw_request
from mcfd_generated.api.machine import get_machine_info
from mcfd_generated.api.reports import close_period
from mcfd_generated.models import (
    CertifyBody,
    ClosePeriodBody,
    CreditNoteBody,
    Preview,
    Problem,
    Receipt,
    RequestOutcome,
)
from mcfd_generated.models.certify_invoice_dry_run import CertifyInvoiceDryRun
from mcfd_generated.types import UNSET, Unset

url, token, nim = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
SALE = {
    "invoiceNumber": "G-1",
    "invoiceType": "FV",
    "items": [{"name": "Riz", "taxGroup": "B", "unitPrice": 15000}],
    "payments": [{"method": "E", "amount": 15000}],
}


def certify(key: str, test: str | Unset = UNSET, **changes: object) -> Receipt | Problem:
    body = CertifyBody.from_dict({**SALE, **changes})
    answer = certify_invoice.sync(nim, client=client, body=body, idempotency_key=key, mcfd_test=test)
    assert isinstance(answer, Receipt | Problem), answer
    return answer


def code(answer: object) -> str:
    assert isinstance(answer, Problem), answer
    return answer.code


receipt = certify("k-1")
assert isinstance(receipt, Receipt), receipt
again = certify("k-1")
assert isinstance(again, Receipt)
assert again.code_secef == receipt.code_secef
dry = certify_invoice.sync(
    nim,
    client=client,
    body=CertifyBody.from_dict({**SALE, "invoiceNumber": "G-9"}),
    idempotency_key="k-9",
    dry_run=CertifyInvoiceDryRun.TRUE,
)
assert isinstance(dry, Preview)
duplicate = certify("k-2")
assert isinstance(duplicate, Problem)
assert isinstance(duplicate.certification, Receipt)
invalid = certify("k-3", invoiceNumber="G-3", payments=[])
assert isinstance(invalid, Problem)
assert not isinstance(invalid.errors, Unset)
offline = certify("k-4", "offline:1", invoiceNumber="G-4")


def accepted_for_later(number: str) -> str:
    """A sale while the machine is away, that is not waited for: its status at once."""
    answer = certify_invoice.sync(
        nim,
        client=client,
        body=CertifyBody.from_dict({**SALE, "invoiceNumber": number}),
        idempotency_key=f"k-{number}",
        mcfd_test="late:1",
        prefer="respond-async",
    )
    assert isinstance(answer, RequestOutcome), answer
    return str(answer.status)


def receipt_of(key: str) -> Receipt:
    """Looked up until it is there."""
    while True:
        answer = get_request.sync(nim, key, client=client)
        assert isinstance(answer, RequestOutcome), answer
        if isinstance(answer.receipt, Receipt):
            return answer.receipt
        time.sleep(0.2)


waiting = accepted_for_later("G-7")
certified_later = receipt_of("k-G-7")
assert accepted_for_later("G-8") == "waiting"
taken_back = withdraw_request.sync(nim, "k-G-8", client=client)
assert isinstance(taken_back, RequestOutcome), taken_back
credit = CreditNoteBody.from_dict(
    {**SALE, "invoiceNumber": "G-5", "invoiceType": "FA", "originalInvoiceNumber": "G-1", "creditNoteNature": "RAM"}
)
while isinstance(credited := certify_credit_note.sync(nim, client=client, body=credit, idempotency_key="k-5"), Problem):
    assert credited.code == "BRIDGE_OFFLINE", credited
found = get_request.sync(nim, "k-1", client=client)
assert isinstance(found, RequestOutcome)
unknown = get_request.sync(nim, "never", client=client)
closure = close_period.sync(nim, client=client, body=ClosePeriodBody(), idempotency_key="z-1")
assert closure is not None
assert not isinstance(closure, Problem), closure
info = get_machine_info.sync(nim, client=client)
assert info is not None
assert not isinstance(info, Problem)
wrong = certify_invoice.sync(
    nim,
    client=AuthenticatedClient(base_url=url, token="wrong"),
    body=CertifyBody.from_dict(SALE),
    idempotency_key="k-6",
)
later = Problem.from_dict({**duplicate.to_dict(), "code": "OF_A_LATER_VERSION"})
print(
    json.dumps(
        {
            "duplicate": duplicate.code,
            "invalid": [invalid.code, invalid.errors[0].field],
            "offline": code(offline),
            "accepted": waiting,
            "certified_later": certified_later.invoice_number,
            "taken_back": str(taken_back.status),
            "found": str(found.status),
            "unknown": code(unknown),
            "z": closure.z_number,
            "nim": info.nim,
            "wrong": code(wrong),
            "later": later.code,
        }
    )
)
