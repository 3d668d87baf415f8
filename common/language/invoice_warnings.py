"""What was adjusted in a certified invoice instead of being refused, as codes with values (`Warn.message`); `fold`: why a specific tax was folded."""

from __future__ import annotations

from typing import Final

from common.language.reason import Reason

TEST_MODE: Final = Reason("test_mode", "the machine works in test mode: this invoice has no fiscal value")
CODE_NOT_TOLD: Final = Reason(
    "code_not_told",
    "the machine certified this invoice and does not tell its code any more",
)
ORIGINAL_NOT_CHECKED: Final = Reason(
    "original_not_checked",
    "{reference} is not an invoice of this ledger; the sum of its credit notes is not checked",
)
NATURE_ASSUMED: Final = Reason("nature_assumed", "creditNoteNature is not given: {assumed} is assumed")
LINES_ROUNDED: Final = Reason(
    "lines_rounded",
    "each line without VAT is rounded to whole francs: the total is {total}, the exact one {exact}, a difference "
    "of {difference}",
)
PSVB_LEFT_OUT: Final = Reason("psvb_left_out", "a rebate (RRR) carries no withholding: psvbGroup is left out")
TEXT_CUT: Final = Reason("text_cut", "{field}: cut to the {length} characters that the machine stores")
PAYMENT_ADJUSTED: Final = Reason("payment_adjusted", "the largest payment is adjusted to the total {total}")
PAYMENT_ADJUSTED_TO_MACHINE: Final = Reason(
    "payment_adjusted_to_machine",
    "the largest payment is adjusted to the machine's total {total}",
)
STAMP_DUTY_LEFT_OUT: Final = Reason("stamp_duty_left_out", "stamp duty is left out: nothing is paid in cash (E)")
STAMP_DUTY_DIFFERS: Final = Reason("stamp_duty_differs", "the table has a stamp duty of {due} on {cash}")
TAX_FOLDED_AND_ROUNDED: Final = Reason(
    "tax_folded_and_rounded",
    "the specific tax is folded into the price and amountTtc rounded to {amount}: {fold}",
)
AMOUNT_ROUNDED: Final = Reason("amount_rounded", "unitPrice × quantity is {exact}: rounded to {amount}")
TAX_FOLDED: Final = Reason("tax_folded", "the specific tax is folded into the price: {fold}")
QUANTITY_AS_ONE: Final = Reason(
    "quantity_as_one",
    "no price with 2 decimals gives the amount at this quantity: certified as one piece",
)
UNIT_PRICE_DERIVED: Final = Reason(
    "unit_price_derived",
    "unitPrice × quantity is not amountTtc: the unit price is derived from amountTtc",
)
UNKNOWN_FIELD: Final = Reason("unknown_field", "{field}: is not a known field")
UNKNOWN_FIELD_NEAR: Final = Reason("unknown_field_near", "{field}: is not a known field; did you mean {near}?")
MORE_UNKNOWN_FIELDS: Final = Reason("more_unknown_fields", "there are more fields that are not known")
FOLD_HT_MODE: Final = Reason("fold_ht_mode", "this machine has no VAT on it in HT mode")
FOLD_NO_PRICE: Final = Reason("fold_no_price", "unitPrice is not given")
NUMBER_INEXACT: Final = Reason("number_inexact", "is a number that JSON cannot carry exactly")
NUMBER_EXPECTED: Final = Reason("number_expected", "must be a number")
FOLD_UNREADABLE: Final = Reason("fold_unreadable", "{field} {fault}")
FOLD_NEGATIVE: Final = Reason("fold_negative", "{field} is negative")
FOLD_ONE_MISSING: Final = Reason("fold_one_missing", "specificTax and specificTaxRate must both be given")
FOLD_NOT_WHOLE: Final = Reason("fold_not_whole", "amountTtc and specificTax must be whole numbers")
FOLD_RATE_DIFFERS: Final = Reason("fold_rate_differs", "specificTaxRate × quantity is not specificTax")
FOLD_AMOUNT_DIFFERS: Final = Reason(
    "fold_amount_differs",
    "amountTtc is not unitPrice × quantity + specificTax × (1 + taxRate / 100)",
)
FOLD_DECIMALS: Final = Reason("fold_decimals", "specificTaxRate has more than 2 decimals")
