"""The command as it runs: pseudo-terminal, state file, signals, control socket, pace."""

import json
import os
import signal
import subprocess
import sys
import termios
import threading

import pytest
from support.simulator.simulator_process import DEADLINE, Control, Process, Serial
from support.simulator.simulator_till import certification

from bridge.frame import MachineReply, Request, encode


def tc_of(reply: MachineReply) -> str:
    return reply.data.decode().split(",")[3]


def test_ready_link_and_clean_end(tmp_path):
    """`ready PATH`, a link to a pseudo-terminal; SIGTERM ends it with 0 and leaves no link and no socket."""
    with Process(tmp_path) as process:
        assert str(process.link.readlink()).startswith("/dev/pts/")
        with Serial(process.link) as serial:
            assert serial.certify("F-1").startswith("1,1,FV,")
        assert process.end(signal.SIGTERM) == 0
        assert not os.path.lexists(process.link)
        assert not process.socket.exists()


def test_options_reach_the_machine(tmp_path):
    """NIM, IFU, test mode, mode and firmware habits, from the command line."""
    arguments = ["--nim", "EL07000001-2", "--ifu", "00099999Z", "--test-mode", "--short-nim", "--baud", "0"]
    with Process(tmp_path, *arguments) as process, Serial(process.link) as serial:
        assert serial.ask(0x20, 0xC1).data.startswith(b"EL07000001,00099999Z,")
    with Process(tmp_path, "--mode", "blocked", "--baud", "0") as process, Serial(process.link) as serial:
        assert serial.ask(0x20, 0xC3).data == b"E:Machine blocked"


def test_state_survives_sigkill_at_any_moment(tmp_path):
    """Killed while a client certifies without pause: the file is always whole, and never behind an answer given."""
    process = Process(tmp_path, "--baud", "0", state=True)
    seen = 0
    for round_ in range(4):
        with process, Serial(process.link) as serial:
            killer = threading.Timer(0.05 + 0.013 * round_, process.child.send_signal, [signal.SIGKILL])
            killer.start()
            seen = max(seen, certify_until_silence(serial, f"R{round_}"))
            killer.join()
            process.child.wait(DEADLINE)
        content = json.loads(process.state.read_bytes())
        assert content["tc"] >= seen
        seen = content["tc"]
    with process, Control(process.socket) as control:
        snapshot = control.order("snapshot")
        assert [entry["tc"] for entry in snapshot["log"]] == list(range(1, snapshot["state"]["tc"] + 1))


def certify_until_silence(serial: Serial, tag: str) -> int:
    """The last TC that was answered."""
    last = 0
    seq = 0
    try:
        for n in range(100_000):
            for command, text in certification(f"{tag}-{n}"):
                seq = (seq + 1) % 0x60
                reply = serial.ask(0x20 + seq, command, text)
            last = int(reply.data.decode().split(",")[1])
    except (OSError, EOFError):  # the port is gone
        return last
    raise AssertionError("never killed")


def test_a_log_that_is_ahead_of_its_state_is_cut_back(tmp_path):
    """A kill between the two writes: the state is the truth."""
    process = Process(tmp_path, "--baud", "0", state=True)
    with process, Serial(process.link) as serial:
        serial.certify("F-1")
        before = process.state.read_bytes()
        serial.certify("F-2")
        process.end(signal.SIGKILL)
    process.state.write_bytes(before)
    with (tmp_path / "state.json.log").open("ab") as log:
        log.write(b'{"torn":')
    with process, Control(process.socket) as control:
        assert [entry["number"] for entry in control.order("snapshot")["log"]] == ["F-1"]


def test_what_it_cannot_use_ends_it_with_a_reason(tmp_path):
    """A damaged state file, a path that is taken, a fault nobody knows: exit 1 and one line."""
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "bad.json").write_text("{")
    command = [sys.executable, "-m", "simulator.process.serve", "--link"]
    for arguments, reason in [
        ([str(tmp_path / "taken")], "is not a link"),
        ([str(tmp_path / "p"), "--state", str(tmp_path / "bad.json")], "is not a state"),
        ([str(tmp_path / "p"), "--faults", "explode"], "is not a fault"),
        ([str(tmp_path / "p"), "--nim", "X"], "is not a NIM"),
    ]:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert reason in done.stderr
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize(("when", "direction", "tc"), [("before", "in", 0), ("after", "in", 1), ("after", "out", 1)])
def test_hold_at_a_frame(tmp_path, when, direction, tc):
    """The socket tells when the simulator holds; until resume nothing moves. For killing a daemon exactly there."""
    with (
        Process(tmp_path, "--baud", "0") as process,
        Control(process.socket) as control,
        Serial(process.link) as serial,
    ):
        for seq, (command, text) in enumerate(certification("F-1")[:-1], 0x20):
            serial.ask(seq, command, text)
        assert control.order("pause-at", next=1, when=when, direction=direction)["frame"] == 6
        os.write(serial.fd, encode(Request(0x25, 0x38, b"15000.00")))
        assert control.wait_for("paused") == {"event": "paused", "frame": 6, "when": when, "direction": direction}
        snapshot = control.order("snapshot")
        assert snapshot["state"]["tc"] == tc
        assert snapshot["frames"] == {"in": 6, "out": 6 if direction == "out" else 5}
        assert snapshot["held"] == [6, when, direction]
        assert control.order("resume")["ok"]
        assert serial.ask(0x25, 0x38, "15000.00").data.startswith(b"1,1,FV,")


def test_orders(tmp_path):
    """What each changes that no other test orders; what cannot be read is answered with an error."""
    with (
        Process(tmp_path, "--baud", "0", "--faults", "nak#1", "--seed", "3", state=True) as process,
        Control(process.socket) as control,
        Serial(process.link) as serial,
    ):
        assert control.order("faults")["ok"]
        assert control.order("foreign-invoice", total=700, number="X-1", type="FA")["last"]["total"] == 700
        assert control.order("counters", tc=41, fvc=30, frc=9)["ok"]
        assert control.order("clock", now="20300101080000")["ok"]
        state = serial.ask(0x21, 0xC1).data.decode().split(",")
        assert state[2][:8] == "20300101"
        assert state[3:6] == ["42", "30", "9"]  # the day of X-1 is over
        assert state[9] == "X-1"
        control.order("tax-server", reachable=False, acknowledged=40, last_contact="20291220000000", error="dns")
        assert serial.ask(0x22, 0xC2).data == b"40,42,20291220000000,DIS,dns"
        control.order("options", short_nim=True, rates={"B": 1900})
        state = serial.ask(0x24, 0xC1).data.decode().split(",")
        assert (state[0], state[12], state[13]) == ("EL02000015", "19.00", "10.00")
        assert serial.ask(0x27, 0xC0, "1,Awa,00084440Y,FV,TTC,1,F-1") is not None
        control.order("lose-invoice")
        assert serial.ask(0x28, 0x38, "C").data == b"E:No invoice open"
        control.order("leave-open")
        assert serial.ask(0x29, 0x38, "C").data == b"OK"
        control.order("reboot", seconds=0, nim="EL09000009-1")
        assert serial.ask(0x28, 0xC1).data.startswith(b"EL09000009,")
        assert [entry["number"] for entry in control.order("snapshot", since=1)["log"]] == []
        for wrong in ("explode", "pause-at"):
            answer = control.order(wrong)
            assert answer["ok"] is False
            assert answer["error"]
        assert not control.order("fault", spec="nix")["ok"]
        assert control.order("stop")["ok"]
        assert process.child.wait(DEADLINE) == 0


def test_a_machine_at_another_speed_is_heard_as_rubbish(tmp_path):
    """`--strict-baud`: at 9600 it answers a client that has set 9600, and nobody else; the speed may be changed while it is open."""
    with Process(tmp_path, "--baud", "9600", "--strict-baud") as process, Serial(process.link) as line:
        set_speed(line.fd, termios.B115200)
        assert line.ask(0x20, 0xC1, patience=0.3) is None
        set_speed(line.fd, termios.B9600)
        assert line.ask(0x21, 0xC1) is not None


def set_speed(descriptor: int, speed: int) -> None:
    attributes = termios.tcgetattr(descriptor)
    attributes[4] = attributes[5] = speed
    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
