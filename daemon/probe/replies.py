"""Replies analysed without the driver's tolerance: their exact form. What the driver reads is a separate question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from bridge.command_table import STATE
from bridge.commands import Command, MachineHabits, ReadState, understand
from bridge.errors import Nonsense, Refused
from bridge.replies.answers import StateReply
from common.language import Text
from daemon.core.ledger.attempt import is_test_code
from daemon.probe.connect import ProbeAnswer, ProbeLine

STATE_FIELDS, STATE_WITHOUT_LAST = 27, 22

_NUMBER_FORMS = (
    ("empty", re.compile(r"")),
    ("whole", re.compile(r"0|[1-9][0-9]*")),
    ("point", re.compile(r"[0-9]+\.[0-9]+")),
    ("comma", re.compile(r"[0-9]+(?:,|\^x2c;)[0-9]+")),
    ("leading zeros", re.compile(r"0[0-9]+")),
    ("blanks", re.compile(r"[0-9 .]+")),
)
Verdict = Literal["confirmed", "contradicted", "not tried"]
Setting = str | int | float


@dataclass(frozen=True)
class ProbeState:
    """C1h: its raw fields, and the driver's reading (None if it fails)."""

    fields: tuple[str, ...]
    read: StateReply | None
    trouble: str = ""

    @property
    def counters(self) -> tuple[int, int, int]:
        return (self.read.tc, self.read.fvc, self.read.frc) if self.read else (0, 0, 0)

    @property
    def number(self) -> str:
        return self.read.last.number if self.read and self.read.last else ""

    @property
    def code(self) -> str:
        return self.read.last.code if self.read and self.read.last else ""

    @property
    def is_test(self) -> bool | None:
        """Whether the machine is in test mode; None without a code."""
        return is_test_code(self.code.upper()) if self.code else None

    @property
    def facts(self) -> tuple[object, ...]:
        """Values that a probe must not change."""
        return (*self.counters, self.number, self.code)


async def read_state(line: ProbeLine) -> ProbeState:
    return state_of(await line.exchange(STATE))


def state_of(answer: ProbeAnswer) -> ProbeState:
    data = answer.reply.data if answer.reply else b""
    fields = tuple(answer.text.split(","))
    try:
        return ProbeState(fields, understand(ReadState(), data, MachineHabits()))
    except (Nonsense, Refused) as error:
        return ProbeState(fields, None, str(error))


def trouble_with(command: Command[Any], answer: ProbeAnswer) -> str:
    """Why the driver cannot read it; empty if it can, or if the machine refused."""
    try:
        understand(command, answer.reply.data if answer.reply else b"", MachineHabits())
    except Nonsense as error:
        return str(error)
    except Refused:
        pass
    return ""


def number_form(text: str) -> str:
    return next((name for name, form in _NUMBER_FORMS if form.fullmatch(text)), "unknown")


def code_page(data: bytes) -> str:
    """`ascii`, `utf-8`, or `8 bit` for any other."""
    if data.isascii():
        return "ascii"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "8 bit"
    return "utf-8"


class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """`check` is its name for scripts. `todo`: what mcfd does about it, or what to do. `settings`: keys of the
    machine's section; those of `[machine.habits]` begin with `habits.`."""

    check: str
    expected: str
    came: str = ""
    verdict: Verdict = "confirmed"
    todo: str = ""
    settings: dict[str, Setting] = {}

    @property
    def in_english(self) -> ProbeFinding:
        """With plain strings, for scripts."""
        return msgspec.structs.replace(self, expected=str(self.expected), came=str(self.came), todo=str(self.todo))


def confirmed(check: str, expected: Text, came: str) -> ProbeFinding:
    return ProbeFinding(check=check, expected=expected, came=came)


def contradicted(check: str, expected: Text, came: str, todo: Text, **settings: Setting) -> ProbeFinding:
    return ProbeFinding(
        check=check,
        expected=expected,
        came=came,
        verdict="contradicted",
        todo=todo,
        settings={name.replace("__", "."): value for name, value in settings.items()},
    )


def judged(is_so: bool, check: str, expected: Text, came: str, todo: Text, **settings: Setting) -> ProbeFinding:
    return contradicted(check, expected, came, todo, **settings) if not is_so else confirmed(check, expected, came)


def not_tried(check: str, expected: Text, why: Text) -> ProbeFinding:
    return ProbeFinding(check=check, expected=expected, came=why, verdict="not tried")
