"""One try at a JetStream server, with nothing left behind."""

import asyncio

from support.ledgers.outbox import make_outgoing

from daemon.upstream.options import Options, compose, open_receiver


def compose_here(entry):
    return compose(entry, "caisse-1")


async def send(options, *entries, subject="closure", event=None):
    """One connection, one try each; nothing may reach the loop's exception handler."""
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    receiver = open_receiver("nats", options)
    try:
        return [
            await receiver.deliver(event or compose_here(e), report_id=e.report_id, subject=subject, nim=e.nim)
            for e in entries or [make_outgoing()]
        ]
    finally:
        await receiver.aclose()
        await asyncio.sleep(0)
        assert unhandled == []


def changed(options: Options, **changes) -> Options:
    return Options(**({name: getattr(options, name) for name in options.__struct_fields__} | changes))


def write_key(folder) -> tuple:
    """The files of one unknown key."""
    (folder / "key").write_text("whsec_" + "A" * 32)
    return (folder / "key",)
