"""`mcfd machine probe` on real pseudo-terminals: a machine, and everything else that may be at the end of a cable."""

import json
import os
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from support.cli.command import NIM, Command
from support.line.ready import ready
from support.line.states import chatty_line, raw_terminal, silent_line
from support.shop import IFU, Machine, Shop, invoice

from bridge.recording.recording import Recorder, read
from daemon.probe import connect
from daemon.settings import load

TIMED = {"reply_time", "reply_gap"}
"""What a busy box contradicts of a machine in good order; `test_probe_habits` shows them on a clock of its own."""


def contradicted(findings):
    found = {finding["check"]: finding for finding in findings if finding["verdict"] == "contradicted"}
    return {check: finding for check, finding in found.items() if check not in TIMED}


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.kill()


@contextmanager
def answering(link, answer: Callable[[bytes], bytes]) -> Iterator[None]:
    """A device that says `answer` to whatever it is sent."""
    stop = threading.Event()

    def serve(leader: int) -> None:
        while not stop.is_set():
            if ready(leader, timeout=0.02):
                os.write(leader, answer(os.read(leader, 4096)))

    with raw_terminal(link) as leader:
        thread = threading.Thread(target=serve, args=(leader,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def modem(sent: bytes) -> bytes:
    """Command echo, and an answer to a command."""
    return sent + (b"\r\nOK\r\n" if b"AT\r" in sent else b"")


def printer(sent: bytes) -> bytes:
    """Silent, except about its state."""
    return b"\x12" if b"\x10\x04\x01" in sent else b""


def test_a_machine_is_read_and_nothing_changes(tmp_path, machine):
    """A table, a file to send without anybody in it, and the machine as before."""
    machine.start()
    command = Command(tmp_path)
    done = command.run("machine", "probe", str(machine.link), "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"{NIM}: " in done.stdout
    assert machine.certified() == []
    (bundle,) = tmp_path.glob(f"probe-{NIM}-*.zip")
    with zipfile.ZipFile(bundle) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(texts) == {"table.txt", "table.json", "recording.rec", "versions.txt"}
    table = json.loads(texts["table.json"])
    assert contradicted(table) == {}
    counted = Counter(finding["verdict"] for finding in table)
    assert f"{counted['confirmed']} confirmed, {counted['contradicted']} contradicted" in done.stdout
    assert read(texts["recording.rec"]).problems == ()
    for text in texts.values():
        for secret in (IFU, "MAISON FASO", "Nkrumah", "25 30 00 00"):
            assert secret not in text


def test_the_settings_it_writes_make_a_shop_work(tmp_path, machine):
    """Probe, write, start: a machine at another speed and with another code page certifies afterwards."""
    machine.start("--baud", "57600", "--strict-baud", "--code-page", "cp1252")
    with Shop(tmp_path, machines=(machine,)) as shop:
        shop._write_config()
        done = shop.mcfd(
            *("machine", "probe", str(machine.link), "--folder", str(tmp_path), "--write", "--speed", "57600")
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = load(shop.config_file).machine[0]
        assert (found.baudrate, found.habits.code_page) == (57_600, "cp1252")
        shop._write_config = lambda: None
        shop.start_daemon()
        sale = invoice("F-1")
        sale["items"][0]["name"] = "Riz parfumé"
        answer = shop.certify(sale)
        assert answer.status_code == 200, answer.text


@pytest.mark.quick_timers
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (silent_line, "no answer"),
        (chatty_line, "something talks here, but not as a fiscal machine does"),
        pytest.param(lambda link: answering(link, modem), "a modem answers here", marks=pytest.mark.long),
        pytest.param(lambda link: answering(link, printer), "a printer answers here", marks=pytest.mark.long),
    ],
    ids=["nothing", "a console", "a modem", "a printer"],
)
async def test_what_is_no_machine_is_named(tmp_path, monkeypatch, place, expected):
    """One clear line each."""
    monkeypatch.setattr(connect, "SPEEDS", (115_200, 9_600))
    for module, name in ((connect, "WAKING"), (connect, "_STRANGER"), (connect, "_ALIVE")):
        monkeypatch.setattr(module, name, getattr(module, name) / 4)
    port = tmp_path / "port"
    with place(port), pytest.raises(connect.NoMachine) as none:
        async with connect.connect(str(port), Recorder(lambda _: None), 115_200):
            pass
    assert expected in str(none.value)


def test_for_scripts(tmp_path, machine):
    """One JSON object: findings, settings, where the file is."""
    machine.start("--short-nim")
    command = Command(tmp_path)
    found = json.loads(command.ok("machine", "probe", str(machine.link), "--folder", str(tmp_path), "--json"))
    assert found["nim"] == NIM.partition("-")[0]
    different = contradicted(found["findings"])
    assert {check: finding["came"] for check, finding in different.items()} == {"state.nim": "EL02000015"}
