"""`mcfd-hq run` that dies by SIGKILL at a point: `before-commit`, `after-commit`, `before-ack` or `after-ack`, when it is passed with closures
for the n-th time. `die_at` is called in its process before it begins."""

import os
import signal
from itertools import count

from sqlalchemy import event

from common.wire.nats_client import Msg
from headquarters.store.book.closures import Closures


def die_at(point: str, times: int) -> None:
    passed = count(1)

    def reached(name: str) -> None:
        if name == point and next(passed) >= times:
            os.kill(os.getpid(), signal.SIGKILL)

    take, ack = Closures.store, Msg.ack

    def dying_take(self, batch, **options):
        def before(_connection):
            reached("before-commit")

        engine = self._database.engine
        if batch:
            event.listen(engine, "commit", before)
        try:
            outcomes = take(self, batch, **options)
        finally:
            if batch:
                event.remove(engine, "commit", before)
        if batch:
            reached("after-commit")
        return outcomes

    def dying_ack(self):
        reached("before-ack")
        ack(self)
        reached("after-ack")

    Closures.store = dying_take
    Msg.ack = dying_ack
