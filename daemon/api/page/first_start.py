"""What the first start asks of the box: which machines there are, and to carry out what the person decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from common.language import Language
from daemon.setup.request import SetupResult


class PortChoice(msgspec.Struct, frozen=True):
    """A port that was asked."""

    port: str
    nim: str = ""
    """empty where no machine answered"""
    ifu: str = ""
    taxpayer: str = ""
    said: str = ""
    """what was there instead of a machine"""


class Probed(msgspec.Struct, frozen=True):
    """One assumption about a machine."""

    expected: str
    came: str
    verdict: str
    """confirmed, contradicted or not tried"""
    todo: str = ""


class SetupRequest(msgspec.Struct, frozen=True):
    """What the person decided; `network` is local, https or plain, and `name` with `password` the first technician."""

    nims: tuple[str, ...]
    network: str
    isf: str
    till: str
    name: str
    password: str


class FirstStart(Protocol):
    """`code` is shown at the box and lets in; `language` is that of the box. `search` asks every port (or `place`), `carry_out`
    writes ledger and configuration, BoxFailed says why it could not; `leave` ends the page and starts mcfd."""

    @property
    def code(self) -> str: ...
    @property
    def language(self) -> Language: ...
    @property
    def made(self) -> SetupResult | None: ...
    async def search(self, place: str, language: Language) -> Sequence[PortChoice]: ...
    async def probe(self, nim: str, language: Language) -> Sequence[Probed]: ...
    async def carry_out(self, request: SetupRequest) -> SetupResult: ...
    def leave(self) -> None: ...
