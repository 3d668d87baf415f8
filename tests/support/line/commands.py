"""One of each command, with as little in it as may be."""

from typing import Any

from bridge import commands


def add_item(*fields: Any) -> commands.AddItem:
    """The first `fields` as given, the others as those of goods without a code and a specific tax."""
    usual = ("", "B", 0, 1, 1, 1, "LOCBIE", "", 0, 0, "", 0)
    return commands.AddItem(*fields, *usual[len(fields) :])


EACH: dict[int, commands.Command] = {
    command.cmd: command
    for command in (
        commands.ReadState(),
        commands.ReadServerLink(),
        commands.ReadTaxpayer(0),
        commands.SetCustomer(),
        commands.OpenInvoice("FV", "1", "", "TTC", "1", "1", ""),
        add_item(),
        commands.ReadSubtotal(),
        commands.Pay("E", 1),
        commands.AddComment("A", ""),
        commands.CloseInvoice(1),
    )
}
