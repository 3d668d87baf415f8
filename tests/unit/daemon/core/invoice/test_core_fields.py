"""What a field of a request may be, at its bounds, and what is said of another value."""

from decimal import Decimal

import pytest

from daemon.core.invoice.fields import Fields

ABOVE, MOST, WHOLE = "must be above 0", "must be at most 10", "has to be a whole number from 0 to 10"


@pytest.mark.parametrize(
    ("kind", "value", "result", "fault"),
    [
        ("above_zero", None, None, None),
        ("above_zero", 0, None, ABOVE),
        ("above_zero", -1, None, ABOVE),
        ("above_zero", Decimal("0.01"), 1, None),
        ("above_zero", 10, 1000, None),
        ("above_zero", Decimal("10.01"), None, MOST),
        ("whole", None, 0, None),
        ("whole", 0, 0, None),
        ("whole", 10, 10, None),
        ("whole", 11, 0, WHOLE),
        ("whole", -1, 0, WHOLE),
        ("whole", "1", 0, WHOLE),
        ("francs", None, 0, None),
        ("francs", 0, 0, None),
        ("francs", Decimal("0.0"), 0, None),
        ("francs", 1, 1, None),
        ("francs", -1, 0, "must be a whole number of francs, 0 or more"),
        ("francs", Decimal("1.5"), 0, "must be a whole number"),
        ("francs", "1", 0, "must be a number"),
        ("text", "", "", "is required"),
        ("text", " ", "", "must not be blank"),
        ("text", 1, "", "must be a string"),
        ("each", [1, 2], [1, 2], None),
        ("each", [1, 2, 3], [], "must have at most 2 entries"),
        ("each", [], [], "must not be empty"),
        ("each", None, [], "is required"),
        ("each", {}, [], "must be a list"),
    ],
)
def test_a_field(kind: str, value: object, result: object, fault: str | None) -> None:
    errors: list[object] = []
    fields = Fields({"x": value}, "a.", errors)
    readers = {
        "above_zero": lambda: fields.above_zero("x", 2, 10),
        "whole": lambda: fields.whole("x", 10),
        "francs": lambda: fields.francs("x"),
        "text": lambda: fields.text("x", 10, required=True),
        "each": lambda: fields.each("x", 2),
    }
    assert readers[kind]() == result
    assert [(error.field, str(error.message)) for error in errors] == ([("a.x", fault)] if fault else [])
