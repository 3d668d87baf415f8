"""A machine in test mode: the codes that it gives begin with TESTFACT, and what it certifies has no fiscal value (protocol 4)."""

from __future__ import annotations

import msgspec

from common.language.invoice_warnings import TEST_MODE
from common.language.reasons import to_stored
from daemon.core.invoice.invoice import Invoice, Warn
from daemon.core.ledger.attempt import Mode

TEST_CODE = "TESTFACT"
WARNING = "TEST_MODE"


def is_test_code(code: str) -> bool:
    return code.startswith(TEST_CODE)


def marked(invoice: Invoice, code: str, mode: Mode) -> Invoice:
    """With a warning where a live book has got a test code; a sandbox has no others."""
    if mode != "live" or not is_test_code(code) or is_marked(invoice):
        return invoice
    warn = Warn(WARNING, to_stored(TEST_MODE))
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, warn))


def is_marked(invoice: Invoice) -> bool:
    return any(warn.code == WARNING for warn in invoice.warnings)
