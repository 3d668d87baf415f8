"""One of each command, with as little in it as may be."""

from bridge import commands

EACH: dict[int, commands.Command] = {
    command.cmd: command
    for command in (
        commands.ReadState(),
        commands.ReadServerLink(),
        commands.ReadTaxpayer(0),
        commands.SetCustomer(),
        commands.OpenInvoice("FV", "1", "", "TTC", "1", "1", ""),
        commands.AddItem("", "B", 0, 1, 1, 1),
        commands.ReadSubtotal(),
        commands.Pay("E", 1),
        commands.AddComment("A", ""),
        commands.CloseInvoice(1),
    )
}
