"""A daemon of the nursery that waits less: for tests in which its own timers are all that is waited for. All by one factor, so that their
order stays; those of the line (`QUICK_LINE`) are a matter of its configuration."""

from functools import partial

from support.nursery import First

FACTOR = 5.0
NEVER = 3600.0


HURRIED: First = (__name__, "arm", {})
STILL: First = (__name__, "arm", {"still": True})
PATIENT: First = (__name__, "let_tills_pass", {})
"""What waits for tills of the shop's network does so for longer than any test."""


def let_tills_pass() -> None:
    from daemon.app.outward import calls  # noqa: PLC0415

    calls.TILLS_FIRST_SECONDS = 600.0


def arm(*, beats: bool = True, impatient: bool = False, still: bool = False) -> None:
    """Without `beats` a machine is looked at as rarely as ever; `still`: not at all, where frames are counted and one more would be the wrong one.
    `impatient` is one to clients whose body does not go on: for a test of just that, since on a busy box an honest one may not go on either."""
    from daemon.api.request import body  # noqa: PLC0415
    from daemon.app import reload, runtime, serve  # noqa: PLC0415
    from daemon.machines.line import HEARTBEAT_SECONDS, RETRY_SECONDS  # noqa: PLC0415

    heartbeat = NEVER if still else HEARTBEAT_SECONDS / FACTOR if beats else HEARTBEAT_SECONDS
    runtime.LineSettings = partial(runtime.LineSettings, retry=RETRY_SECONDS / FACTOR, heartbeat=heartbeat)
    reload.FINISH_EVERY /= FACTOR
    serve.STOP_GRACE /= FACTOR
    if not impatient:
        return
    body.BODY_SECONDS /= FACTOR
