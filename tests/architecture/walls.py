"""The plan of the house as a table, and how it is read from the sources: who may import whom, which library stays in which room,
how long a function may be.

Read with `ast`, wherever an import stands (in a function, under TYPE_CHECKING, or as a name given to `import_module`): a wall
that only holds at run time is none.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("bridge", "common", "daemon", "edge", "exchange", "headquarters", "pagekit", "simulator")

# A room may import itself and what stands beside it; the room of a module is the longest name that fits.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "bridge": frozenset(),
    # What both do in the same way; it knows neither.
    "common": frozenset(),
    # What box and headquarters agree on; it knows neither. Those that send import it, and the core for the chain of closures.
    "exchange": frozenset(),
    # What the pages of a shop and of headquarters share.
    "pagekit": frozenset(),
    # Where connections come in at both; it knows no HTTP.
    "edge": frozenset(),
    # Headquarters knows boxes by the exchange alone.
    "headquarters.core": frozenset({"exchange"}),
    "headquarters.store": frozenset({"exchange", "headquarters.core"}),
    "headquarters.intake": frozenset({"exchange", "headquarters.core", "headquarters.store"}),
    "headquarters.findings": frozenset({"exchange", "headquarters.core", "headquarters.store"}),
    "headquarters.api": frozenset(
        {"exchange", "headquarters.core", "headquarters.store", "headquarters.intake", "pagekit.cookies"}
    ),
    "headquarters.page": frozenset(
        {
            "common",
            "exchange",
            "pagekit",
            "headquarters.core",
            "headquarters.store",
            "headquarters.api",
            "headquarters.intake.threads",
        }
    ),
    "headquarters.app": frozenset({"edge", "headquarters"}),
    "headquarters.cli": frozenset(
        {"exchange", "pagekit", "headquarters.core", "headquarters.store", "headquarters.app", "headquarters"}
    ),
    "headquarters.demo": frozenset({"headquarters.demo_line"}),
    "headquarters.demo_line": frozenset(),
    "headquarters": frozenset(),
    "simulator": frozenset(),
    "simulator.machine": frozenset({"bridge.frame"}),
    "simulator.line": frozenset({"bridge.frame", "bridge.recording.recording", "simulator.machine"}),
    "simulator.control": frozenset({"simulator.line", "simulator.machine"}),
    "simulator.process": frozenset(
        {"bridge.recording.recording", "simulator.control", "simulator.line", "simulator.machine"}
    ),
    # What a machine is and what a till asks for stand first; the ledger keeps both, the reports read the ledger.
    "daemon.core": frozenset(),
    "daemon.core.invoice": frozenset({"daemon.core.errors", "daemon.core.money"}),
    "daemon.core.machine": frozenset({"daemon.core.errors", "daemon.core.invoice", "daemon.core.money"}),
    # What a closure's hash is over is agreed with whoever receives it.
    "daemon.core.ledger": frozenset(
        {"daemon.core.errors", "daemon.core.invoice", "daemon.core.machine", "exchange.chain"}
    ),
    "daemon.core.report": frozenset(
        {
            "common.spreadsheet",
            "daemon.core.clock",
            "daemon.core.errors",
            "daemon.core.invoice",
            "daemon.core.ledger",
            "daemon.core.machine",
            "daemon.core.money",
        }
    ),
    "daemon.usecases": frozenset({"daemon.core"}),
    "daemon.usecases.worker": frozenset({"daemon.core", "daemon.usecases.ports"}),
    "daemon.usecases.certification": frozenset({"daemon.core", "daemon.usecases.ports", "daemon.usecases.worker"}),
    "daemon.usecases.reports": frozenset(
        {"daemon.core", "daemon.usecases.certification", "daemon.usecases.ports", "daemon.usecases.worker"}
    ),
    "daemon.usecases.delivery": frozenset({"daemon.core", "daemon.usecases.ports", "exchange"}),
    "daemon.store": frozenset({"daemon.core"}),
    "daemon.store.sqlite": frozenset({"daemon.core"}),  # knows no table
    "daemon.store.tables": frozenset({"daemon.core", "daemon.store.sqlite.faults", "daemon.store.sqlite.queries"}),
    "daemon.store.maintenance": frozenset({"daemon.core", "daemon.store.sqlite", "daemon.store.tables"}),
    "daemon.upstream": frozenset({"daemon.core", "exchange"}),
    "daemon.machines": frozenset({"daemon.core", "bridge"}),
    # Cookies are read by one function, in the page and before it.
    "daemon.api": frozenset(
        {"daemon.core", "daemon.language", "daemon.paper", "daemon.unneeded", "daemon.usecases", "pagekit.cookies"}
    ),
    # The edge knows no route and no key.
    "daemon.api.http": frozenset({"edge", "daemon.core", "daemon.api.problems", "daemon.api.refusals"}),
    "daemon.api.access": frozenset(
        {
            "edge",
            "daemon.core",
            "daemon.usecases",
            "daemon.api.box",
            "daemon.api.http",
            "daemon.api.paper",
            "daemon.api.refusals",
            "pagekit.cookies",
        }
    ),
    "daemon.api.request": frozenset(
        {"daemon.core", "daemon.usecases", "daemon.api.access", "daemon.api.http", "daemon.api.refusals"}
    ),
    "daemon.api.document": frozenset(
        {
            "daemon.core",
            "daemon.usecases",
            "daemon.api.box",
            "daemon.api.http",
            "daemon.api.problems",
            "daemon.api.refusals",
        }
    ),
    "daemon.api.page": frozenset(
        {
            "daemon.core",
            "daemon.usecases",
            "daemon.api.access",
            "daemon.api.box",
            "daemon.api.http",
            "daemon.api.refusals",
            "daemon.api.request",
            "daemon.language",
            "daemon.paper",
            "pagekit",
        }
    ),
    "daemon.api.routes": frozenset(
        {
            "daemon.core",
            "daemon.usecases",
            "daemon.api.access",
            "daemon.api.box",
            "daemon.api.document",
            "daemon.api.http",
            "daemon.api.paper",
            "daemon.api.refusals",
            "daemon.api.request",
            "daemon.language",
            "daemon.paper",
        }
    ),
    "daemon.language": frozenset(),
    "daemon.paper": frozenset({"daemon.core", "daemon.language"}),
    "daemon.logs": frozenset(),
    "daemon.log_words": frozenset({"daemon.language"}),
    "daemon.notify": frozenset(),
    "daemon.rotation": frozenset(),
    "daemon.unneeded": frozenset(),
    "daemon.demo": frozenset(),
    "daemon.probe": frozenset({"bridge", "daemon.core", "daemon.files", "daemon.language", "daemon.settings"}),
    "daemon.company": frozenset({"daemon.core", "daemon.paper", "daemon.settings"}),
    "daemon.recording": frozenset({"bridge", "daemon.language"}),
    "daemon.printer": frozenset({"daemon.core"}),
    "daemon.settings": frozenset({"daemon.core", "daemon.language"}),
    "daemon.files": frozenset(),
    "daemon.owner": frozenset({"daemon.files"}),
    "daemon.whole_box": frozenset({"daemon.files", "daemon.owner", "daemon.settings", "daemon.language"}),
    "daemon.tls": frozenset({"daemon.files", "daemon.settings", "daemon.language"}),
    "daemon.setup": frozenset(
        {
            "daemon.core",
            "daemon.files",
            "daemon.machines",
            "daemon.settings",
            "daemon.language",
            "daemon.tls",
            "bridge",
        }
    ),
    "daemon.doctor": frozenset(
        {
            "daemon.core",
            "daemon.machines",
            "daemon.owner",
            "daemon.paper",  # whether the logo can be printed
            "daemon.printer",
            "daemon.settings",
            "daemon.store",
            "daemon.language",
            "daemon.tls",
            "daemon.upstream",
            "bridge",
        }
    ),
    # A command works on the ledger, the outbox, a line or the running daemon; never through the API or a use case.
    "daemon.cli": frozenset(
        {
            "daemon",  # the version
            "daemon.app",
            "daemon.company",
            "daemon.core",
            "daemon.doctor",
            "daemon.files",
            "daemon.owner",
            "daemon.logs",
            "daemon.log_words",
            "daemon.machines",
            "daemon.probe",
            "daemon.paper",
            "daemon.recording",
            "daemon.rotation",
            "daemon.unneeded",
            "daemon.settings",
            "daemon.setup",
            "daemon.store",
            "daemon.language",
            "daemon.tls",
            "daemon.upstream",
            "daemon.whole_box",
            "bridge",
            "pagekit.terminal",
        }
    ),
    "daemon.app": frozenset({"bridge", "daemon", "simulator"}),
    "daemon": frozenset(),
}

EVERYWHERE = "daemon.language"
"""What is told to people is said where it is known; this package imports nothing of ours."""

# Modules that stand side by side and do not know each other: one for each group of endpoints.
STRANGERS = ("daemon.api.routes",)

# Inside bridge, each may import those before it (errors ← frame ← link ← machine, commands ← machine).
BRIDGE_ORDER = ("errors", "frame", "recording", "recorder", "fields", "commands", "port", "talk", "link", "machine")

ONLY_IN: Mapping[str, tuple[str, ...]] = {
    "serial": ("bridge.port", "bridge.port_network"),
    "sqlite3": ("daemon.store",),
    "aiosqlite": ("daemon.store",),
    "litestar": ("daemon.api", "daemon.app", "headquarters.api", "headquarters.page", "headquarters.app", "pagekit"),
    "uvicorn": ("daemon.api", "daemon.app", "headquarters.app"),
    "httpx": ("daemon.upstream", "daemon.demo", "headquarters.findings", "headquarters.demo"),
    "nats": ("headquarters.demo", "daemon.upstream", "headquarters.intake"),
    "click": ("daemon.cli", "headquarters.cli"),
    "sqlalchemy": ("headquarters.store",),
    "alembic": ("headquarters.store",),
    "jinja2": ("daemon.api.page", "headquarters.page", "pagekit"),
    "cryptography": ("daemon.tls", "daemon.upstream", "daemon.whole_box", "exchange.keys"),
}

LONGEST_FUNCTION = 60
LONGEST_FILE = 400


def sources() -> dict[str, str]:
    """Every module of ours and its text."""
    found = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = file.read_text()
    return found


class Said(NamedTuple):
    """What the rules look at of a module."""

    imports: list[str]
    taken: list[tuple[int, str, str]]
    """`from module import name`: the dots before it, both names."""
    strings: set[str]
    functions: list[tuple[str, int]]
    """With their lines."""


@cache
def said(text: str) -> Said:
    """Read once for all rules."""
    found = Said([], [], set(), [])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.imports.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.taken.extend((node.level, str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.strings.add(node.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
    return found


def imports(module: str, text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Names of the modules that one imports; ours and others."""
    found = said(text)
    yield from found.imports
    for level, origin, name in found.taken:
        assert level == 0, f"{module}: relative import"
        whole = f"{origin}.{name}"
        yield whole if whole in modules else origin
    for string in found.strings & modules.keys():  # a dotted name of ours in a string is there to be imported,
        if "." in string and not any(other.startswith(f"{string}.") for other in modules):  # a package's for its data
            yield string


def is_under(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def room_of(module: str) -> str | None:
    rooms = [
        room
        for room in MAY_IMPORT
        if (module == room if room in ("daemon", "headquarters") else is_under(module, room))
    ]
    return max(rooms, key=len, default=None)


def may(module: str, other: str) -> bool:
    room = room_of(module)
    if room is None:
        return False
    if is_under(module, "bridge") and is_under(other, "bridge"):
        return in_order(module, other)
    if room in ("daemon.app", "headquarters.app"):
        return True
    if room in STRANGERS and is_under(other, room):
        return False
    if is_under(module, "daemon") and is_under(other, EVERYWHERE):
        return True
    return is_under(other, room) or any(
        other == allowed if allowed in ("daemon", "headquarters") else is_under(other, allowed)
        for allowed in MAY_IMPORT[room]
    )


def in_order(module: str, other: str) -> bool:
    names = [name.rpartition(".")[2] for name in (module, other)]
    if not all(name in BRIDGE_ORDER for name in names):
        return True  # a module outside the plan: the rule against circles holds for it
    return BRIDGE_ORDER.index(names[0]) > BRIDGE_ORDER.index(names[1])


def wrong_arrows(modules: Mapping[str, str]) -> list[str]:
    wrong = []
    for module, text in modules.items():
        for other in sorted(set(imports(module, text, modules))):
            ours = other.partition(".")[0] in PACKAGES
            if ours and other != module and not may(module, other):
                wrong.append(f"{module} imports {other}")
            library = other.partition(".")[0]
            if library in ONLY_IN and not any(is_under(module, room) for room in ONLY_IN[library]):
                wrong.append(f"{module} imports {other}, which stays in {' and '.join(ONLY_IN[library])}")
    return wrong


def circle(modules: Mapping[str, str]) -> list[str]:
    """The modules of one circle of imports, none when there is none."""
    arrows = {
        module: {other for other in imports(module, text, modules) if other in modules and other != module}
        for module, text in modules.items()
    }
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def too_long(modules: Mapping[str, str]) -> list[str]:
    found = []
    for module, text in modules.items():
        lines = len(text.splitlines())
        if lines > LONGEST_FILE:
            found.append(f"{module}: {lines} lines")
        found += [
            f"{module}.{name}: {length} lines" for name, length in said(text).functions if length > LONGEST_FUNCTION
        ]
    return found
