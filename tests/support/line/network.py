"""A machine on the network: ser2net, as on many serial device servers, and a relay between it and us that stalls and splits."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from support.line.ready import ready
from support.ports import free_port
from support.tools import need

PATIENCE = 60.0


@contextmanager
def ser2net(folder: Path, device: Path, *, telnet: bool = False, kick: bool = False) -> Iterator[int]:
    """The TCP port at which ser2net carries to and from that device; `telnet`: with RFC 2217; `kick`: a newcomer takes over."""
    need("ser2net")
    port = free_port()
    config = folder / f"ser2net-{port}.yaml"
    accepter = "telnet(rfc2217),tcp" if telnet else "tcp"
    config.write_text(
        f"connection: &machine\n"
        f"  accepter: {accepter},127.0.0.1,{port}\n"
        f"  connector: serialdev(nouucplock),{device},115200n81,local\n"
        f"  options:\n    kickolduser: {'true' if kick else 'false'}\n"
    )
    with subprocess.Popen(["ser2net", "-n", "-u", "-c", str(config)], stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(config, port)
            yield port
        finally:
            process.kill()


def _wait_for(config: Path, port: int) -> None:
    """Listening is asked of the kernel: a connection would take the line."""
    listening = f":{port:04X} 00000000:0000 0A"
    deadline = time.monotonic() + PATIENCE
    while listening not in Path("/proc/net/tcp").read_text():
        assert time.monotonic() < deadline, f"ser2net does not listen: {config.read_text()}"
        time.sleep(0.02)


class Relay:
    """TCP in between. `stall` holds everything back, in both directions, until it is false again; `piece` cuts what passes into so
    many bytes, `gap` seconds apart; `target` may be moved to another server, for the connections that follow."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.stall = False
        self.piece = 4096
        self.gap = 0.0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._stopping = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """Every connection ends, as when the cable is pulled and put back."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._stopping:
            if not ready(self._server, timeout=0.05):
                continue
            near, _ = self._server.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self._pairs.append((near, far))
            thread = threading.Thread(target=self._carry, args=(near, far))
            self._threads.append(thread)
            thread.start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, suppress(OSError):
            while not self._stopping:
                if self.stall:
                    time.sleep(0.005)
                    continue
                for end in ready(near, far, timeout=0.05):
                    data = end.recv(self.piece)
                    if not data:
                        return
                    (far if end is near else near).sendall(data)
                    time.sleep(self.gap)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self.cut()
        for thread in self._threads:
            thread.join()
        self._server.close()
