"""The probe of one port, as the page shows it."""

from __future__ import annotations

from common.language import Language, Text, tell
from daemon.api.page.faults import BoxRefused
from daemon.api.page.first_start import Probed
from daemon.app.runtime import Runtime

IN_USE = Text(
    "this machine is in use: the probe needs its line for itself (enabled = false in its section, then restart)"
)


async def probed(place: str, baudrate: int, language: Language) -> list[Probed]:
    """What is assumed of a machine, asked of it; only reading. BoxRefused when there is none."""
    from daemon.probe.connect import NoMachine  # noqa: PLC0415  rarely needed
    from daemon.probe.run import probe  # noqa: PLC0415

    try:
        result = await probe(place, baudrate)
    except NoMachine as error:
        raise BoxRefused(error.text) from None
    rows = [
        Probed(
            expected=str(tell(found.expected, language)),
            came=str(tell(found.came, language)),
            verdict=found.verdict,
            todo=str(tell(found.todo, language)),
        )
        for found in result.findings
    ]
    broken = str(tell(result.broken_off, language))
    return [*rows, *([Probed(expected="", came=broken, verdict="contradicted")] if broken else [])]


async def probe_unused(runtime: Runtime, nim: str, language: Language) -> list[Probed]:
    """Of a machine that is switched off in the configuration: nobody else is on its line then."""
    machine = runtime.settings.find_machine(nim)
    if machine is None or machine.enabled:
        raise BoxRefused(IN_USE)
    return await probed(str(machine.port), machine.baudrate, language)
