"""What a test may tell a running simulator: one JSON object per line, one JSON object back, over a socket for any number of clients, inside
the simulator's one loop (docs/simulator.md)."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from simulator.line.session import Direction, When
from simulator.machine import options
from simulator.machine.options import CreditStyle

_CHUNK = 65_536
_LINE_MOST = 65_536


class _Order(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    pass


class Unplug(_Order, tag="unplug"):
    """`seconds` null: until plug."""

    seconds: float | None = None


class Plug(_Order, tag="plug"):
    pass


class Reboot(_Order, tag="reboot"):
    """A power cut: dark for `seconds`; with `nim`, another machine comes up."""

    seconds: float = 0.3
    nim: str = ""


class ForeignInvoice(_Order, tag="foreign-invoice"):
    total: int = 1000
    type: Literal["FV", "FT", "EV", "ET", "FA", "EA"] = "FV"
    number: str = ""


class LoseInvoice(_Order, tag="lose-invoice"):
    pass


class LeaveOpen(_Order, tag="leave-open"):
    """Another program begins an invoice, and goes away."""


class SilenceOrder(_Order, tag="silence"):
    """`seconds` null: until speak."""

    seconds: float | None = None


class Speak(_Order, tag="speak"):
    pass


class AddFault(_Order, tag="fault"):
    spec: str


class SetFaults(_Order, tag="faults"):
    """Instead of those so far; an empty spec ends them."""

    spec: str = ""
    seed: int = 0


class SetMode(_Order, tag="mode"):
    mode: Literal["active", "not activated", "blocked", "deactivated"]


class TaxServerOrder(_Order, tag="tax-server"):
    """Only what is given changes; `last_contact` in 14 digits."""

    reachable: bool | UnsetType = UNSET
    acknowledged: int | UnsetType = UNSET
    last_contact: str | UnsetType = UNSET
    state: Literal["CON", "TRA", "DIS"] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class SetClock(_Order, tag="clock"):
    """`now` in 14 digits, or `offset` in seconds from the true time."""

    now: str = ""
    offset: float = 0.0


class Think(_Order, tag="think"):
    ms: float


class SetOptions(_Order, tag="options"):
    """See `options.Options` and `habits.Habits`; `rates` in hundredths of a percent for the groups that change."""

    ifu: str | UnsetType = UNSET
    test_mode: bool | UnsetType = UNSET
    credit_check: float | UnsetType = UNSET
    credit_style: CreditStyle | UnsetType = UNSET
    short_nim: bool | UnsetType = UNSET
    dashed_codes: bool | UnsetType = UNSET
    close_prefix: bool | UnsetType = UNSET
    close_number: bool | UnsetType = UNSET
    plain_taxpayer: bool | UnsetType = UNSET
    fc_per_type: bool | UnsetType = UNSET
    fvc_local: bool | UnsetType = UNSET
    odd_types: bool | UnsetType = UNSET
    no_codes: bool | UnsetType = UNSET
    vat: options.Vat | UnsetType = UNSET
    vat_per_line: bool | UnsetType = UNSET
    groups_without_vat: bool | UnsetType = UNSET
    untaxed_specific: bool | UnsetType = UNSET
    line_decimals: bool | UnsetType = UNSET
    untold_specific: bool | UnsetType = UNSET
    numbers: options.Numbers | UnsetType = UNSET
    texts: options.Texts | UnsetType = UNSET
    times: options.Times | UnsetType = UNSET
    fields: options.Fields | UnsetType = UNSET
    code_page: options.CodePage | UnsetType = UNSET
    full_customer: bool | UnsetType = UNSET
    whole_close: bool | UnsetType = UNSET
    name_most: int | UnsetType = UNSET
    echo: bool | UnsetType = UNSET
    halves: float | UnsetType = UNSET
    wake: float | UnsetType = UNSET
    clock_offset: float | UnsetType = UNSET
    rates: dict[str, int] | UnsetType = UNSET


class SetCounters(_Order, tag="counters"):
    tc: int | UnsetType = UNSET
    fvc: int | UnsetType = UNSET
    frc: int | UnsetType = UNSET


class TakeSnapshot(_Order, tag="snapshot"):
    """`log`: with the certified invoices whose TC is above `since`."""

    log: bool = True
    since: int = 0


class PauseAt(_Order, tag="pause-at"):
    """The `frame`-th frame of all, or the `next`-th from now on."""

    when: When
    direction: Direction
    frame: int = 0
    next: int = 0


class Resume(_Order, tag="resume"):
    pass


class Stop(_Order, tag="stop"):
    pass


Order = (
    Unplug
    | Plug
    | Reboot
    | ForeignInvoice
    | LoseInvoice
    | LeaveOpen
    | SilenceOrder
    | Speak
    | AddFault
    | SetFaults
    | SetMode
    | TaxServerOrder
    | SetClock
    | Think
    | SetOptions
    | SetCounters
    | TakeSnapshot
    | PauseAt
    | Resume
    | Stop
)


class _ControlClient:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.waiting = bytearray()


class Control:
    """`obey` answers one line. Events go to every client. The host asks which sockets to select on, and hands back those
    that are ready."""

    def __init__(self, path: Path, obey: Callable[[bytes], bytes]) -> None:
        self._path = path
        self._obey = obey
        self._clients: dict[socket.socket, _ControlClient] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen()

    def readers(self) -> list[socket.socket]:
        return [self._listener, *self._clients]

    def writers(self) -> list[socket.socket]:
        return [connection for connection, client in self._clients.items() if client.waiting]

    def serve(self, readable: Iterable[Any], writable: Iterable[Any]) -> None:
        """What `select` found ready; entries that are not ours are passed over."""
        for ready in readable:
            if ready is self._listener:
                self._accept()
            elif client := self._clients.get(ready):
                self._take(client)
        for ready in writable:
            if client := self._clients.get(ready):
                self._flush(client)

    def tell(self, event: bytes) -> None:
        for client in list(self._clients.values()):
            client.waiting += event
            self._flush(client)

    def close(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            self._clients[connection] = _ControlClient(connection)

    def _take(self, client: _ControlClient) -> None:
        try:
            data = client.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.received += data
        while (end := client.received.find(b"\n")) >= 0:
            line = bytes(client.received[:end])
            del client.received[: end + 1]
            client.waiting += self._obey(line)
        if data and len(client.received) <= _LINE_MOST:
            self._flush(client)
        else:
            self._drop(client)

    def _flush(self, client: _ControlClient) -> None:
        try:
            sent = client.connection.send(client.waiting) if client.waiting else 0
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        del client.waiting[:sent]

    def _drop(self, client: _ControlClient) -> None:
        self._clients.pop(client.connection, None)
        client.connection.close()
