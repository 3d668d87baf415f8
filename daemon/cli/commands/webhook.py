"""Tests of the way to headquarters or to a webhook: one signed message, and what came of it in a sentence."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from common.language import tr
from common.language.reasons import from_stored
from daemon.cli.failures import FOUND_WRONG, Failure
from daemon.cli.options import described, json_option, settings_option
from daemon.cli.output import complain, print_json, say
from daemon.core.clock import millis_text
from daemon.core.delivery import Delivered, Delivery
from daemon.core.events import TEST, Envelope, MachineEvent
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.upstream.options import UpstreamReceiver

command = click.Group("webhook")


@command.command(
    "test",
    **described(
        tr("Send each webhook, or the one of that NAME, one signed event `webhook.test`. Exit 1 when it is not taken."),
        "mcfd webhook test",
        "mcfd webhook test caisse.example",
    ),
)
@settings_option
@click.argument("name", required=False)
@json_option
def test(settings: Settings, name: str | None, as_json: bool) -> int:
    names = [webhook.lane for webhook in settings.webhook]
    if not names:
        raise Failure(tr("no [[webhook]] section: events are sent nowhere"))
    if name not in (None, *names):
        raise Failure(tr("no webhook has the name {name}; there is: {known}", name=name, known=", ".join(names)))
    from daemon.app.outward.receivers import webhook_receiver
    from daemon.upstream.options import BadOptions

    nim, at = settings.machine[0].nim, sent_at()
    data = msgspec.Raw(msgspec.json.encode(MachineEvent(nim=nim, mode="live", at=at)))
    event = msgspec.json.encode(Envelope(type=TEST, timestamp=at, nim=nim, mode="live", data=data))
    found = []
    for number, webhook in enumerate(settings.webhook):
        if name in (None, webhook.lane):
            try:
                receiver = webhook_receiver(number, webhook)
            except BadOptions as error:
                raise Failure(error) from None
            found.append((webhook.lane, webhook.url, send(receiver, event, str(uuid.uuid4()), nim)))
    return print_results(found, as_json=as_json)


def sent_at() -> str:
    return millis_text(int(datetime.now(UTC).timestamp() * 1000))


def send(receiver: UpstreamReceiver, event: bytes, event_id: str, nim: str) -> Delivery:
    async def job() -> Delivery:
        try:
            return await receiver.trial(event, event_id=event_id, nim=nim)
        finally:
            await receiver.aclose()

    return asyncio.run(job())


def print_results(found: list[tuple[str, str, Delivery]], *, as_json: bool) -> int:
    """`found`: name, address, what came of it. The exit code: 1 when one of them was not taken."""
    if as_json:
        print_json(
            [
                {"name": name, "url": url, "ok": isinstance(done, Delivered), "error": getattr(done, "error", None)}
                for name, url, done in found
            ]
        )
    else:
        for name, url, done in found:
            if isinstance(done, Delivered):
                say(tr("{name}: {url} has taken the test message", name=name, url=url))
            else:
                complain(
                    tr(
                        "{name}: {url} did not take the test message: {why}",
                        name=name,
                        url=url,
                        why=from_stored(done.error),
                    )
                )
    return 0 if all(isinstance(done, Delivered) for *_, done in found) else FOUND_WRONG
