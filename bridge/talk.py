"""Commands one after the other, each as soon as the one before it has its reply: what is said next, and what stands ready already."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

import msgspec

from bridge.frame import MachineReply, Request, encode

T = TypeVar("T")


class TalkCommand(NamedTuple):
    """A command of a talk. `is_read`: the talk wants its reply before it says the next one; otherwise the reply is only checked."""

    cmd: int
    data: bytes = b""
    is_read: bool = True


Words = Generator[TalkCommand, MachineReply | None, T]
"""Yields a command, is sent its reply or None, and so on; what it returns is what came of it all."""


Said = tuple[Request, bytes, bool]


class Talk(msgspec.Struct):
    """Commands one after the other. The next one is put into a frame while the machine is busy with the one before it."""

    words: Words[Any]
    check: Callable[[MachineReply], None]
    is_read: bool = True
    """Whether the command under way is."""
    ahead: Said | Exception | None = None
    """The next one, or what came of saying it: StopIteration after the last."""

    def say(self, seq: int, reply: MachineReply | None) -> Said:
        word = self.words.send(reply)
        request = Request(seq, word.cmd, word.data)
        return request, encode(request), word.is_read

    def say_ahead(self, seq: int) -> None:
        if self.is_read or self.ahead is not None:
            return
        try:
            self.ahead = self.say(seq, None)
        except Exception as error:  # noqa: BLE001  the end, or what cannot be put into words: told when it is due
            self.ahead = error

    def answered(self, seq: int, reply: MachineReply) -> Said:
        """What is to be said to that; StopIteration with what came of it all."""
        if self.is_read:
            return self.say(seq, reply)
        self.check(reply)
        said, self.ahead = self.ahead or self.say(seq, None), None
        if isinstance(said, Exception):
            raise said
        return said
