"""The walls of the house (walls.py), held against every module; and the check itself, held against what it has to see."""

import pytest
from walls import circle, room_of, sources, too_long, wrong_arrows


def test_every_module_has_a_room():
    """A module outside the plan of the house has to be given its room, here, before anything may import it."""
    assert [module for module in sources() if room_of(module) is None] == []


def test_only_the_arrows_of_the_house():
    """Nobody imports across a wall, and each library stays in its room."""
    assert wrong_arrows(sources()) == []


def test_no_circle():
    """Modules form no circle, not even one for types only."""
    assert circle(sources()) == []


def test_nothing_is_too_long():
    """No function over 60 lines, no file over 400."""
    assert too_long(sources()) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("bridge.link", "from daemon.core import invoice"),
        ("bridge.frame", "from bridge.link import Link"),
        ("bridge.link", "import serial"),
        ("simulator.machine.machine", "import bridge.commands"),
        ("daemon.core.invoice.invoice", "def f():\n    from daemon.usecases.certification.certify import certify"),
        ("daemon.core.invoice.invoice", "from daemon import logs"),
        ("daemon.usecases.certification.certify", "from daemon.store.ledger import Ledger"),
        ("daemon.store.ledger", "from daemon.usecases import ports"),
        ("daemon.store.ledger", "from daemon.upstream.kinds import KINDS"),
        ("daemon.upstream.https", "from bridge import frame"),
        ("daemon.machines.line", "from daemon.store.ledger import Ledger"),
        ("daemon.api.handlers", "if TYPE_CHECKING:\n    from daemon.store.ledger import Ledger"),
        ("daemon.api.handlers", "import sqlite3"),
        ("daemon.cli.commands.access.keys", "from simulator.machine.machine import Machine"),
        ("daemon.cli.commands.access.keys", "import_module('daemon.api.handlers')"),
        ("daemon.cli.commands.access.keys", "from litestar import Litestar"),
        ("daemon.demo", "from daemon.settings import load"),
        ("daemon.usecases.certification.certify", "import litestar.status_codes"),
    ],
)
def test_a_wrong_arrow_is_seen(module, text):
    """The check itself: each of these breaks one rule and is reported, wherever in the file it stands."""
    named = (
        "bridge.frame",
        "bridge.link",
        "bridge.commands",
        "daemon.logs",
        "daemon.settings",
        "daemon.core.invoice.invoice",
    )
    others = (
        "daemon.usecases.certification.certify",
        "daemon.usecases.ports",
        "daemon.store.ledger",
        "daemon.upstream.kinds",
        "daemon.api.routes.certify",
        "daemon.store.sqlite.connection",
        "daemon.core.report.ranges",
    )
    modules = dict.fromkeys((*named, *others, "daemon.api.handlers", "simulator.machine.machine"), "")
    assert len(wrong_arrows({**modules, module: text})) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("bridge.machine", "from bridge.link import Link"),
        ("daemon.usecases.certification.certify", "from daemon.core.invoice.invoice import Invoice"),
        ("daemon.machines.line", "from bridge.machine import Machine"),
        (
            "daemon.app",
            "from simulator.machine.machine import Machine\nimport litestar\nfrom daemon.api import handlers",
        ),
        ("daemon.cli.commands.box.run", "def run():\n    from daemon.app.serve import serve"),
        ("simulator.line.session", "from bridge.frame import Decoder"),
    ],
)
def test_a_right_arrow_is_not_seen(module, text):
    """The check itself: what the plan allows passes."""
    assert wrong_arrows({module: text}) == []


def test_a_circle_is_seen():
    """The check itself: two modules that import each other, one of them inside a function."""
    modules = {"daemon.core.a": "import daemon.core.b", "daemon.core.b": "def f():\n    from daemon.core import a"}
    assert set(circle(modules)) == set(modules)


def test_length_is_seen():
    """The check itself: a function of 61 lines and a file of 401."""
    function = "def f():\n" + "    pass\n" * 60
    assert too_long({"m": function}) == ["m.f: 61 lines"]
    assert too_long({"m": "x = 1\n" * 401}) == ["m: 401 lines"]
