"""What the bridge says of a line in trouble: it knows no language, so that its sentences are told again by the catalogue (`language.stored`)."""

from __future__ import annotations

from typing import Final

from common.language import Text

SAID: Final = (
    Text("there is no such device (unplugged?)"),
    Text("no permission to open it (is this user in its group, often dialout?)"),
    Text("another program is using it"),
    Text("the device does not respond (input/output error)"),
    Text("this is not a serial port"),
    Text("nobody listens there (is the device server on, and the port number right?)"),
    Text("the network does not reach that address"),
    Text("that address does not answer"),
    Text("nobody knows that name"),
    Text("the line hung up"),
    Text("the link was closed"),
    Text("the machine keeps the line busy without answering"),
    Text("the machine does not answer"),
    Text("the machine does not know the command {command}"),
    Text("the machine did not come to an end with 38h"),
    Text("given up by the caller in the middle of a command"),
    Text("given up by the caller while 38h was pending"),
    Text("the machine does not come to an end"),
    Text("it is used by {names}"),
    Text("it hangs up on us; a device server does that while another program is connected"),
    Text("{port} vanished: {cause}"),
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
