"""A cancellation that a library swallowed: nats-py does while it flushes, `asyncio.wait_for` of Python 3.11 when the answer and
the cancellation come in the same turn. The task goes on as if nobody had told it, and who waits for its end waits for ever."""

import asyncio


def heed_cancellation() -> None:
    """Called once in each round of a loop that runs until it is cancelled. Raises CancelledError in a task that was."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
