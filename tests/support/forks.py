"""A process that makes something once and forks for each process that comes to its socket: a fork begins with all of it. It ends with the run
of the tests."""

import os
import select
import signal
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def started(at: Path, command: Sequence[str], environ: Mapping[str, str] = os.environ) -> None:
    """From now on a process listens at `at`; the first of several processes starts it, and does not wait for its end. `command` is
    handed the listening socket as its standard input, so that those who come before it is ready wait."""
    own = at.with_name(f"{at.name}-{os.getpid()}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(own))
        listening.listen()
        with suppress(FileExistsError):
            at.hardlink_to(own)
            descriptors = (
                (os.POSIX_SPAWN_DUP2, listening.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            )
            os.posix_spawn(command[0], command, environ, file_actions=descriptors)
    own.unlink()


def connected(at: Path) -> socket.socket:
    """To a fork of its own."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(at))
    except OSError:
        connection.close()
        raise
    return connection


def serve(run: int, work: Callable[[socket.socket], None]) -> None:
    """For each that comes, `work` in a fork, until the process `run` is gone."""
    listening, ended = socket.socket(fileno=os.dup(0)), os.pidfd_open(run)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the exit code of a fork is not read
    looks = select.poll()
    looks.register(listening, select.POLLIN)
    looks.register(ended, select.POLLIN)
    while ended not in dict(looks.poll()):
        connection, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            os.close(ended)
            try:
                work(connection)
            except BaseException:  # noqa: BLE001  a fork must not come back into this loop
                traceback.print_exc()
            finally:
                os._exit(0)
        connection.close()
