"""Receives closures from JetStream, into the table of closures.py (docs/upstream.md)."""

import asyncio
import os
from pathlib import Path

from closures import open_table, put_aside, take

from common.wire.errors import BadEvent, NatsError
from common.wire.nats_pull import NatsOptions, connected, pulling
from common.wire.signing import NotSigned
from headquarters.intake.stream import delivery_of


def keep(table, keys, messages):
    with table:
        for message in messages:
            headers = {name.lower(): value for name, value in message.headers.values.items()}
            try:
                take(table, keys, headers, message.data, message.subject)
            except (BadEvent, NotSigned) as error:
                put_aside(table, f"CLOSURES {delivery_of(message).seq}", error)
    for message in messages:  # what is in the table or put aside is on disk: now the stream may forget it
        message.ack()


async def main():
    table, keys = open_table()
    credentials, authority = Path(os.environ["NATS_CREDENTIALS"]), os.environ.get("NATS_CA")
    options = NatsOptions(url=os.environ["NATS_URL"], credentials_file=credentials, tls_ca=authority)
    while True:
        try:
            client = await connected(options)
            try:
                async with pulling(client, "CLOSURES", options.durable, 500) as pull:
                    while True:
                        keep(table, keys, await pull.next_messages())
            finally:
                await client.close()
        except (OSError, NatsError) as error:
            print(error)
            await asyncio.sleep(1)


asyncio.run(main())
