"""A till as naive as can be, straight at a machine or at a session: for the tests in this folder."""

from datetime import UTC, datetime, timedelta

from bridge.frame import Decoder, MachineReply, Nak, Request, Syn, encode
from simulator.line.session import LineSession, Output, Sent
from simulator.machine.machine import MachineAnswer, SimulatedMachine
from simulator.machine.options import SimulatorOptions

RICE = "Riz 25kg\tLOCBIE,B18.00%15000\t15000.00*1.000"


class FakeClock:
    def __init__(self, year: int = 2026, month: int = 3, day: int = 2, hour: int = 9) -> None:
        self.now = datetime(year, month, day, hour, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def opening(number: str, *, kind: str = "FV", mode: str = "TTC", credit: str = "") -> str:
    """`credit`: NATURE,REF."""
    middle = f",{credit}" if credit else ""
    return f"1,Awa,00084440Y,{kind}{middle},{mode},1,{number}"


class Till:
    """One command, one answer as text; the last status bytes are kept."""

    def __init__(self, machine: SimulatedMachine | None = None, **options: object) -> None:
        self.clock = FakeClock()
        self.machine = machine or SimulatedMachine(SimulatorOptions(**options), self.clock)
        self.status = b""

    def ask(self, command: int, text: str = "") -> str:
        answer: MachineAnswer = self.machine.execute(command, text.encode())
        self.status = answer.status
        return answer.data.decode()

    def enter(self, number: str, *lines: str, **how: str) -> None:
        """C0h and the items, each of which has to be taken."""
        self.take(0xC0, opening(number, **how))
        for line in lines or (RICE,):
            self.take(0x31, line)

    def take(self, command: int, text: str = "") -> str:
        answer = self.ask(command, text)
        assert not answer.startswith("E:"), f"{command:02X}h {text!r}: {answer}"
        return answer

    def subtotal(self) -> int:
        return int(self.take(0x33).split(",")[0])

    def enter_and_pay(self, number: str, *lines: str, **how: str) -> int:
        self.enter(number, *lines, **how)
        total = self.subtotal()
        self.take(0x35, f"E{total}")
        return total

    def certify(self, number: str, *lines: str, **how: str) -> list[str]:
        total = self.enter_and_pay(number, *lines, **how)
        return self.take(0x38, f"{total}.00").removeprefix("R:").split(",")

    def state(self) -> list[str]:
        return self.take(0xC1).split(",")


class Wire:
    """Frames at a session, in the test's own time."""

    def __init__(self, session: LineSession | None = None) -> None:
        self.session = session or LineSession(SimulatedMachine(SimulatorOptions(), FakeClock()))
        self.now = 100.0
        self.outputs: list[Output] = []

    def put(self, data: bytes) -> list[object]:
        """Bytes in at this moment; the events of what comes out at once."""
        self.session.receive(data, self.now)
        return self.look()

    def send(self, seq: int, command: int, text: str = "") -> list[object]:
        return self.put(encode(Request(seq, command, text.encode())))

    def look(self, after: float = 0.0) -> list[object]:
        self.now += after
        outputs = self.session.poll(self.now)
        self.outputs += outputs
        return events(b"".join(output.data for output in outputs if isinstance(output, Sent)))

    def text(self, seq: int, command: int, text: str = "") -> str:
        (reply,) = self.send(seq, command, text)
        assert isinstance(reply, MachineReply)
        return reply.data.decode()

    def certify(self, number: str, first_seq: int = 0x20) -> str:
        """One item, six commands; the answer to 38h."""
        *before, last = certification(number)
        for offset, (command, text) in enumerate(before):
            assert not self.text(first_seq + offset, command, text).startswith("E:")
        return self.text(first_seq + len(before), *last)


def certification(number: str) -> list[tuple[int, str]]:
    return [
        (0xC3, ""),
        (0xC0, opening(number)),
        (0x31, RICE),
        (0x33, ""),
        (0x35, "E15000"),
        (0x38, "15000.00"),
    ]


def events(data: bytes) -> list[object]:
    decoder = Decoder()
    decoder.receive(data)
    found: list[object] = []
    while not isinstance(event := decoder.next_event(), type):
        found.append(event)
    return found


def is_nak(event: object) -> bool:
    return isinstance(event, Nak)


def is_syn(event: object) -> bool:
    return isinstance(event, Syn)
