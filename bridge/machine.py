"""Typed commands of one machine; Refused has the machine's own text."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from bridge.command_table import COMMANDS
from bridge.commands import (
    USUAL,
    CancelInvoice,
    CloseInvoice,
    Command,
    MachineHabits,
    ReadState,
    understand,
)
from bridge.errors import Nonsense, Refused, UnknownCommand
from bridge.frame import MachineReply
from bridge.link import Link
from bridge.replies.answers import Closed, StateReply
from common.language.reasons import CALLER_GAVE_UP_CLOSING, CLOSE_PENDING

T = TypeVar("T")

ASK_AGAIN_SECONDS = 3600.0
"""After this a command that was unknown to the machine is tried again: the line may have been at fault."""


@dataclass(eq=False)
class LinkedMachine:
    """Over a link after its handshake. Every method may raise LinkEnded, Refused, Unsendable and Nonsense;
    `ask` for a command that is optional also UnknownCommand."""

    link: Link
    habits: MachineHabits = USUAL
    _unknown_until: dict[int, float] = field(default_factory=dict, init=False)

    async def close_invoice(self, total: int, *, credit: bool) -> Closed:
        """38h with the total in whole XOF; a credit note may take the tax server a minute.

        `P:` means not yet: 38h is then sent again as a new command, because the same SEQ would only repeat `P:`. If the
        time limit ends, or the caller is cancelled, the outcome is unknown and the link ends (LineDown, `sent`), as for
        any 38h without an answer. Nonsense here also leaves the outcome unknown."""
        timers = self.link.timers
        first_byte, patience, overall = (
            (timers.first_byte_credit, timers.pending_credit, timers.overall_credit)
            if credit
            else (timers.first_byte_close, timers.pending_close, timers.overall)
        )
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            left = began + overall - clock()
            answer = await self.ask(CloseInvoice(total), first_byte=first_byte, overall=left)
            if isinstance(answer, Closed):
                return answer
            if clock() - began + timers.pending_every > patience:
                raise self.link.give_up(CLOSE_PENDING)
            try:
                await asyncio.sleep(timers.pending_every)
            except asyncio.CancelledError:
                self.link.give_up(CALLER_GAVE_UP_CLOSING)
                raise

    async def cancel(self) -> bool:
        """38h C: True if an invoice was open and was cancelled."""
        try:
            await self.ask(CancelInvoice(), first_byte=self.link.timers.first_byte_close, is_odd=False)
        except Refused:
            return False
        return True

    async def ask(
        self,
        command: Command[T],
        *,
        first_byte: float | None = None,
        overall: float | None = None,
        is_odd: bool = True,
    ) -> T:
        """`is_odd`: whether a refusal becomes an incident of the recording."""
        data = command.encode(self.habits)
        if COMMANDS[command.cmd].is_optional:
            reply = await self._send_optional(command.cmd, data)
        else:
            reply = await self.link.exchange(command.cmd, data, first_byte=first_byte, overall=overall)
        try:
            return understand(command, reply.data, self.habits)
        except (Refused, Nonsense) as error:
            if is_odd:
                self.link.record.note_incident(type(error).__name__.lower())
            raise

    async def _send_optional(self, cmd: int, data: bytes) -> MachineReply:
        """Raises UnknownCommand if the machine is silent at it but answers C1h; it is not sent again for an hour."""
        clock = asyncio.get_running_loop().time
        if clock() >= self._unknown_until.get(cmd, 0.0):
            reply = await self.link.probe(cmd, data, self.link.timers.tries)
            if reply is not None:
                return reply
            await self.ask(ReadState())
            self._unknown_until[cmd] = clock() + ASK_AGAIN_SECONDS
        raise UnknownCommand(cmd)


async def handshake(link: Link, habits: MachineHabits = USUAL) -> StateReply:
    """The machine's first reply on a new connection (protocol section 5).

    The SEQ of the previous run's last frame is unknown. If ours equals it by chance, the machine repeats an old reply:
    so C1h is sent twice, with two SEQs, and only the second answer counts. The first may be missing."""
    await link.probe(ReadState.cmd)
    return await LinkedMachine(link, habits).ask(ReadState())
