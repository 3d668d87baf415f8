"""Serial lines on which something else than a machine is: nobody, somebody who talks, a program that has it open."""

import os
import subprocess
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def silent_line(link: Path) -> Iterator[Path]:
    """A pseudo-terminal at `link` whose far end never answers."""
    with raw_terminal(link):
        yield link


@contextmanager
def chatty_line(link: Path, words: bytes = b"\r\nbox login: ") -> Iterator[Path]:
    """One whose far end talks all the time, and not as a machine does."""
    stop = threading.Event()

    def talk(leader: int) -> None:
        while not stop.wait(0.02):
            with suppress(BlockingIOError):  # no reader, or no writer
                os.write(leader, words)
                os.read(leader, 4096)

    with raw_terminal(link) as leader:
        os.set_blocking(leader, False)
        thread = threading.Thread(target=talk, args=(leader,))
        thread.start()
        try:
            yield link
        finally:
            stop.set()
            thread.join()


@contextmanager
def locked_line(link: Path) -> Iterator[int]:
    """A program that has the port open and never heard of locks; its process id."""
    port = os.open(link, os.O_RDONLY | os.O_NOCTTY)
    with subprocess.Popen(["sleep", "60"], stdin=port) as process:
        os.close(port)
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def raw_terminal(link: Path) -> Iterator[int]:
    """A pseudo-terminal at `link`; the descriptor of its far end."""
    leader, follower = os.openpty()
    tty.setraw(follower)
    link.symlink_to(os.ttyname(follower))
    try:
        yield leader
    finally:
        link.unlink()
        os.close(follower)
        os.close(leader)
