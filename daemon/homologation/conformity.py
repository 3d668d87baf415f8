"""The texts, clause by clause: what each asks, who answers it, how, and the test that shows it (law of Burkina Faso, `clauses.toml`)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

HERE = Path(__file__).parent

By = Literal["mcfd", "mcfd aide", "caisse", "machine", "entreprise"]
"""Who answers a clause: mcfd, mcfd in part, the till, the machine, or the shop itself."""


class Clause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`test` is a file of tests/ or one test in it, as pytest writes it; a clause by mcfd has one."""

    number: str
    asks: str
    by: By
    answer: str = ""
    test: str = ""


class LawText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    clauses: tuple[Clause, ...] = msgspec.field(name="clause")


class _ClausesFile(msgspec.Struct, frozen=True):
    texts: tuple[LawText, ...] = msgspec.field(name="text")


def read_texts() -> tuple[LawText, ...]:
    return msgspec.convert(tomllib.loads((HERE / "clauses.toml").read_text(encoding="utf-8")), _ClausesFile).texts
