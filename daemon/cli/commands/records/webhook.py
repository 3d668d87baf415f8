from __future__ import annotations

import uuid

import click
import msgspec

from daemon.cli.failures import Failure
from daemon.cli.options import described, json_option, settings_option
from daemon.core.events import TEST, Envelope, MachineEvent
from daemon.language import tr
from daemon.settings import Settings

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
    known = [webhook.lane for webhook in settings.webhook]
    if not known:
        raise Failure(tr("no [[webhook]] section: events are sent nowhere"))
    if name not in (None, *known):
        raise Failure(tr("no webhook has the name {name}; there is: {known}", name=name, known=", ".join(known)))
    from daemon.app.outward.receivers import webhook_receiver
    from daemon.cli.trial import send, sent_at, tell
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
    return tell(found, as_json=as_json)
