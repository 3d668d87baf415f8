"""One assumption about a machine and what came of asking."""

from __future__ import annotations

from typing import Literal

import msgspec

from common.language import Text

Verdict = Literal["confirmed", "contradicted", "not tried"]
Setting = str | int | float


class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """`check` is its name for scripts. `todo`: what mcfd does about it, or what has to be done; `settings`: keys of the machine's
    section, those of `[machine.habits]` under their own name with `habits.` before it."""

    check: str
    expected: str
    came: str = ""
    verdict: Verdict = "confirmed"
    todo: str = ""
    settings: dict[str, Setting] = {}

    @property
    def in_english(self) -> ProbeFinding:
        """With texts that are texts and nothing more, for scripts."""
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
