"""A real `mcf-simulator` process with a naive client on its port and another on its control socket."""

import json
import os
import signal
import socket
import time
import tty
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from support.line.ready import ready
from support.nursery import Child
from support.shop import start_program, wait_for
from support.simulator.simulator_till import certification, events

from bridge.frame import MachineReply, Request, encode

DEADLINE = 60.0


class Process:
    """`folder` holds link, control socket and, with `state=True`, the state file; it may be started again after its end."""

    def __init__(self, folder: Path, *arguments: str, state: bool = False) -> None:
        self.link = folder / "port"
        self.socket = folder / "control"
        self.state = folder / "state.json"
        self._arguments = ["--link", str(self.link), "--control", str(self.socket), *arguments]
        self._arguments += ["--state", str(self.state)] if state else []
        self._output = folder / "said"
        self.child: Child | None = None

    def __enter__(self) -> Self:
        self._output.write_text("")
        self.child = start_program("mcf-simulator", self._arguments, self._output, os.environ)
        wait_for(lambda: self._output.read_text().endswith("\n") or self.child.poll() is not None)
        assert self._output.read_text() == f"ready {self.link}\n"
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.end(signal.SIGTERM)

    def end(self, number: signal.Signals) -> int:
        self.child.send_signal(number)
        return self.child.wait(DEADLINE)


class Serial:
    """Opens the port as it is found; a whole reply, or None when none came in time."""

    def __init__(self, link: Path) -> None:
        self.fd = os.open(link, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def ask(self, seq: int, command: int, text: str = "", *, patience: float = DEADLINE) -> MachineReply | None:
        os.write(self.fd, encode(Request(seq, command, text.encode())))
        received = b""
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            if ready(self.fd, timeout=left):
                data = os.read(self.fd, 4096)
                if not data:
                    raise EOFError("the line hung up")
                received += data
                for event in events(received):
                    if isinstance(event, MachineReply) and event.seq == seq:
                        return event
        return None

    def certify(self, number: str) -> str:
        for seq, (command, text) in enumerate(certification(number), 0x20):
            reply = self.ask(seq, command, text)
        return reply.data.decode()


class Control(AbstractContextManager["Control"]):
    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def order(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer; events that come before it are passed over."""
        self._socket.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
        while "event" in (answer := self.next_line()):
            pass
        return answer

    def wait_for(self, event: str) -> dict[str, Any]:
        while (line := self.next_line()).get("event") != event:
            pass
        return line

    def next_line(self) -> dict[str, Any]:
        return json.loads(self._lines.readline())
