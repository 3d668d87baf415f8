from pathlib import Path

from daemon.settings import Settings, changes, load

MACHINE = '[[machine]]\nnim = "EL02000015-1"\nport = "/dev/mcf-1"\n'
SECOND = MACHINE.replace("15-1", "16-1").replace("mcf-1", "mcf-2")
UPSTREAM = '[upstream]\nkind = "nats"\nurl = "nats://127.0.0.1"\ncredentials_file = "shop.creds"\n'


def settings(folder: Path, text: str) -> Settings:
    file = folder / "mcfd.toml"
    file.write_text(text)
    return load(file, {})


def test_nothing_has_changed(tmp_path):
    """The same file again: nothing to reload, nothing that waits."""
    old = settings(tmp_path, MACHINE + UPSTREAM)
    found = changes(old, settings(tmp_path, MACHINE + UPSTREAM))
    assert (found.reloaded, found.restart, found.in_force) == ((), (), old)


def test_a_habit_of_a_machine_waits_for_a_restart(tmp_path):
    """It is named with its machine and its table."""
    old = settings(tmp_path, MACHINE)
    found = changes(old, settings(tmp_path, f'{MACHINE}[machine.habits]\ncode_page = "cp1252"\n{SECOND}'))
    assert (found.reloaded, found.restart) == ((), ("machine[0].habits.code_page", "machine[1]"))
    assert found.in_force == old


def test_what_counts_at_once_and_what_waits(tmp_path):
    """Keys by their own word; a section that comes, or goes, as a whole."""
    old = settings(tmp_path, f'[server]\nport = 1\n[logs]\nlevel = "info"\nformat = "json"\n{MACHINE}')
    text = f'[server]\nport = 2\n[logs]\nlevel = "debug"\nformat = "console"\n{MACHINE}isf = "9"\n{SECOND}{UPSTREAM}'
    found = changes(old, settings(tmp_path, text))
    assert found.reloaded == ("upstream", "logs.level")
    assert found.restart == ("server.port", "machine[0].isf", "machine[1]", "logs.format")
    force = found.in_force
    assert (force.server.port, len(force.machine), force.logs.format) == (1, 1, "json")
    assert (force.logs.level, force.upstream and force.upstream.kind) == ("debug", "nats")
    back = changes(force, old)
    assert (back.reloaded, back.restart, back.in_force) == (("upstream", "logs.level"), (), old)
