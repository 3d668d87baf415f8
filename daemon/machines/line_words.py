"""What the bridge says of a line in trouble: it knows no language, so that its sentences are told again by the catalogue (`language.stored`)."""

from __future__ import annotations

from typing import Final

from common.language import Text

SAID: Final = (
    Text("the machine does not know the command {command}"),
    Text("{count} bytes that must not be cut do not fit into a frame's {limit}"),
    Text("{what} cannot be read: {shown}"),
    Text("the machine's state has {count} fields"),
    Text("the certification"),
    Text("the time of the certification"),
    Text("certification code"),
    Text("the opening of an invoice"),
    Text("the totals of a line"),
    Text("an amount of a line"),
    Text("the subtotal"),
    Text("an amount of the subtotal"),
    Text("the answer to a payment"),
    Text("the link to the tax server"),
    Text("the total of the last invoice"),
    Text("a VAT rate"),
    Text("a number"),
)
