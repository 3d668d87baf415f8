"""`mcfd-hq run` that dies by SIGKILL at a point: `python -m support.hq.killed POINT NTH --config FILE`.

POINT is `before-commit`, `after-commit`, `before-ack` or `after-ack`; NTH counts the times that it is passed with closures."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path

from nats.aio.msg import Msg
from sqlalchemy import event

from headquarters.app.logs import configure
from headquarters.app.serve import serve
from headquarters.app.settings import load
from headquarters.store.closures import Closures

POINT, NTH = sys.argv[1], int(sys.argv[2])
passed = count(1)


def die_at(point: str) -> None:
    if point == POINT and next(passed) >= NTH:
        os.kill(os.getpid(), signal.SIGKILL)


take, ack = Closures.take, Msg.ack


def dying_take(self, batch, **options):
    def before(_connection):
        die_at("before-commit")

    engine = self._database.engine
    if batch:
        event.listen(engine, "commit", before)
    try:
        outcomes = take(self, batch, **options)
    finally:
        if batch:
            event.remove(engine, "commit", before)
    if batch:
        die_at("after-commit")
    return outcomes


async def dying_ack(self):
    die_at("before-ack")
    await ack(self)
    await self._client.flush()
    die_at("after-ack")


Closures.take = dying_take
Msg.ack = dying_ack
configure()
sys.exit(serve(load(Path(sys.argv[sys.argv.index("--config") + 1]))))
