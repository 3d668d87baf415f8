"""Tills at an HTTP endpoint, as light as possible, since they share the cores with the daemon; invoices of a
wholesaler; and a blocking pyserial script without HTTP and disk, such as a shop would write."""

import asyncio
import json
import random
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import serial
from support.shop import IFU

from bridge.frame import Decoder, MachineReply
from bridge.link import Link
from bridge.machine import LinkedMachine
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.invoice.invoice import Invoice, Payment
from daemon.core.machine.agreement import agree
from daemon.core.machine.state import FiscalCounters, Subtotal
from daemon.machines.adapter import ConnectedMachine
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import DEFAULT_RATES, SimulatorOptions

PATIENCE = 120.0

GOODS = (
    "Riz parfumé 25 kg", "Riz local Bagré 5 kg", "Sucre en poudre 1 kg", "Huile de coton 5 L", "Huile d'arachide 1 L",
    "Farine de blé 50 kg", "Lait concentré sucré 1 kg", "Lait en poudre 400 g", "Café soluble 200 g", "Thé vert 250 g",
    "Pâtes alimentaires 500 g", "Tomate concentrée 2,2 kg", "Savon de Marseille 400 g", "Lessive en poudre 500 g",
    "Eau minérale 1,5 L ×6", "Bière blonde 65 cl", "Jus de bissap 50 cl", "Jus de mangue 1 L", "Biscuits secs 300 g",
    "Sardines à l'huile 125 g", "Thon entier 185 g", "Mayonnaise 500 ml", "Cube bouillon ×60", "Sel iodé 1 kg",
    "Beurre de karité 250 g", "Mil décortiqué 10 kg", "Maïs blanc 50 kg", "Haricots niébé 5 kg", "Sésame grillé 500 g",
    "Poulet bicyclette", "Œufs plateau de 30", "Pain de mie complet", "Yaourt nature ×8", "Fromage à tartiner ×16",
    "Ciment CPA 45 50 kg", "Fer à béton 10 mm", "Tôle bac alu 35/100", "Peinture à eau 20 kg", "Clous 80 mm 1 kg",
    "Câble électrique 2,5 mm² 100 m", "Ampoule LED 9 W", "Pile LR6 ×4", "Torche solaire", "Cadenas 50 mm",
)  # fmt: skip
BUYERS = (
    "SARL Faso Distribution", "Ets Ouédraogo & Frères", "Pharmacie Wend-Panga", "Quincaillerie du Plateau",
    "Alimentation Nabonswendé", "Hôtel Les Palmiers SA", "Restaurant Le Verdoyant", "Coopérative Sidwaya", "BTP Sahel SARL",
)  # fmt: skip
STREETS = ("Avenue Kwamé Nkrumah", "Rue de la Chance, Gounghin", "Boulevard France-Afrique", "Secteur 15, Ouaga 2000")
GROUPS = "BBBBBBBBAAC"
METHODS = "EEEEEEMMMCVB"
WEIGHTS = (0.25, 0.5, 0.75, 1.5, 2.25)


class TillRefused(Exception):
    """The endpoint refused or failed."""


@dataclass(frozen=True)
class Endpoint:
    port: int
    path: str
    key: str = ""
    tls: ssl.SSLContext | None = None

    def request(self, body: bytes) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.tls.wrap_socket(connection, server_hostname="127.0.0.1") if self.tls else connection


def answer_of(received: bytes) -> bytes | None:
    """The body of a complete 2xx answer; None while it is arriving."""
    head, found, body = received.partition(b"\r\n\r\n")
    if not found:
        return None
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    if len(body) < int(length):
        return None
    if not head.startswith(b"HTTP/1.1 2"):
        raise TillRefused(f"{head.partition(chr(13).encode())[0].decode()}: {body.decode()[:300]}")
    return body


class Till:
    """One client: sends the next request after the answer to the last one."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket = endpoint.connect()

    def post(self, body: bytes) -> float:
        """Seconds from the first byte of the request to the last byte of its answer."""
        request = self._endpoint.request(body)
        began = time.perf_counter()
        self._socket.sendall(request)
        received = b""
        while True:
            received += self._socket.recv(65536)
            ended = time.perf_counter()  # before the till parses it
            if answer_of(received) is not None:
                return ended - began

    def close(self) -> None:
        self._socket.close()


@dataclass
class _TillClient:
    socket: socket.socket
    endpoint: Endpoint
    bodies: Iterator[bytes]
    name: str
    received: bytes = b""

    def send(self) -> None:
        self.received = b""
        self.socket.sendall(self.endpoint.request(next(self.bodies)))


@dataclass
class Crowd:
    """Many clients in one loop. `done` has (time in seconds of `perf_counter`, client's name) of every answer."""

    done: list[tuple[float, str]] = field(default_factory=list)
    _clients: list[_TillClient] = field(default_factory=list)

    def join(self, endpoint: Endpoint, bodies: Iterator[bytes], name: str = "") -> None:
        self._clients.append(_TillClient(endpoint.connect(), endpoint, bodies, name))

    def run(self, enough: Callable[[], bool]) -> None:
        """Until `enough` returns True after an answer; unfinished requests are answered and not counted."""
        with selectors.DefaultSelector() as selector:
            for client in self._clients:
                selector.register(client.socket, selectors.EVENT_READ, client)
                client.send()
            waiting = len(self._clients)
            finishing = False
            while waiting:
                ready = selector.select(PATIENCE)
                if not ready:
                    raise TillRefused(f"no answer within {PATIENCE} s")
                for chosen, _ in ready:
                    client = chosen.data
                    client.received += client.socket.recv(65536)
                    if answer_of(client.received) is None:
                        continue
                    if not finishing:
                        self.done.append((time.perf_counter(), client.name))
                        finishing = enough()
                    if finishing:
                        waiting -= 1
                    else:
                        client.send()

    def run_for(self, seconds: float) -> None:
        ends = time.perf_counter() + seconds
        self.run(lambda: time.perf_counter() >= ends)

    def run_until(self, count: int) -> None:
        self.run(lambda: len(self.done) >= count)

    def close(self) -> None:
        for client in self._clients:
            client.socket.close()


def rate(times: Sequence[float], warm_up: int) -> float:
    """Answers per second, from the end of the warm-up to the last one."""
    counted = times[warm_up:]
    if len(counted) < 2:
        raise TillRefused(f"{len(times)} answers are too few for a rate: something else takes this box")
    return (len(counted) - 1) / (counted[-1] - counted[0])


def invoice(number: str, items: int, dice: random.Random, *, walk_in: bool = False) -> dict[str, Any]:
    """A typical sale: whole amounts, one payment; to a company, or to an unknown customer."""
    lines = [_item(dice) for _ in range(items)]
    total = sum(line["amountTtc"] for line in lines)
    return {
        "invoiceNumber": number,
        "invoiceType": "FV",
        "operatorId": f"OP-{dice.randrange(1, 40):03d}",
        "operatorName": dice.choice(("Awa Compaoré", "Issouf Sawadogo", "Mariam Traoré", "Comptoir principal 2")),
        **({} if walk_in else {"customer": _customer(dice)}),
        "items": lines,
        "payments": [{"method": dice.choice(METHODS), "amount": total}],
    }


def _customer(dice: random.Random) -> dict[str, str]:
    number = dice.randrange(10**8)
    return {
        "clientType": dice.choice(("PM", "PM", "PC")),
        "ifu": f"{number:08d}{dice.choice('ABCDEFGHKLMNPRSTUVWXY')}",
        "name": dice.choice(BUYERS),
        "address": f"{dice.randrange(1, 13):02d} BP {dice.randrange(100, 7000)} Ouagadougou {dice.randrange(1, 13):02d}, {dice.choice(STREETS)}",
        "phone": f"+226 {dice.choice(('25', '70', '76'))} {number % 10**6:06d}",
        "email": f"compta{dice.randrange(100)}@{dice.choice(('fasonet', 'onatel', 'exemple'))}.bf",
        "rccm": f"BF-OUA-01-{dice.randrange(2008, 2026)}-B12-{dice.randrange(10**5):05d}",
    }


def _item(dice: random.Random) -> dict[str, Any]:
    price = dice.randrange(1, 400) * 100
    quantity = dice.choice(WEIGHTS) if dice.random() < 0.1 else dice.choice((1, 1, 1, 1, 2, 2, 3, 4, 6, 12))
    return {
        "name": dice.choice(GOODS),
        "code": f"613{dice.randrange(10**10):010d}",
        "taxGroup": dice.choice(GROUPS),
        "unitPrice": price,
        "quantity": quantity,
        "amountTtc": round(price * quantity),
    }


def bodies(items: int, *, series: str = "FV", walk_in: bool = False) -> Iterator[bytes]:
    """Endless encoded requests, numbered like a till's."""
    dice = random.Random(f"{series} {items}")
    count = 0
    while True:
        count += 1
        yield msgspec.json.encode(invoice(f"{series}-2026-{count:06d}", items, dice, walk_in=walk_in))


class BareScript(Iterator[float]):
    """Seconds of each sale of `items` items to a walk-in customer, made by `next`; `count` sales are prepared."""

    def __init__(self, link: Path, items: int, count: int) -> None:
        self._sales = iter(asyncio.run(_frames(items, count)))
        self._port = serial.Serial(str(link), 115_200, timeout=10)

    def __next__(self) -> float:
        frames = next(self._sales)
        began = time.perf_counter()
        for frame in frames:
            self._exchange(frame)
        return time.perf_counter() - began

    def _exchange(self, frame: bytes) -> None:
        replies = Decoder()
        self._port.write(frame)
        while True:
            replies.receive(self._port.read(max(1, self._port.in_waiting)))
            if isinstance(replies.next_event(), MachineReply):
                return


class _Tap(MemoryPort):
    """A port that records the frames written to it."""

    written: list[bytes]

    def write(self, data: bytes) -> None:
        self.written.append(data)
        super().write(data)


async def _frames(items: int, count: int) -> list[list[bytes]]:
    """The frames of each invoice, as the driver writes them."""
    tap = _Tap(LineSession(SimulatedMachine(SimulatorOptions())))
    tap.written = []
    link = Link(tap)
    machine = ConnectedMachine(LinkedMachine(link))
    await machine.state()
    frames = []
    for at, body in enumerate(islice(bodies(items, series="BARE", walk_in=True), count)):
        sale = read_invoice(
            json.loads(body, parse_float=Decimal), defaults=Defaults("1", "Caisse 1", "1"), rates=DEFAULT_RATES
        )
        tap.written = []
        await machine.enter(sale, IFU, partial(_payments, sale))
        await machine.certify(sale, sale.total_ttc, FiscalCounters(at, at, 0))
        frames.append(tap.written)
    link.close()
    return frames


def _payments(sale: Invoice, subtotal: Subtotal) -> Sequence[Payment]:
    return agree(sale, subtotal).payments
