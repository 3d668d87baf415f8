"""Seeded plans of faults on the line and in the machine.

    SPEC  = ITEM{,ITEM}
    ITEM  = KIND[:ARG][@CMD][#N[+]][=RATE%]       e.g. spoil=3%   drop-reply@38h#1   late:4@38h#2+   flip-reply@31h=50%

CMD: only frames of that command. #N: only the N-th of them since the rule was added; #N+: from the N-th on.
RATE: with that probability, by the plan's seed; without it, always. Times are seconds."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bridge.frame import MachineReply, encode

_ITEM = re.compile(r"([a-z-]+)(?::([^@#=]+))?(?:@([0-9A-Fa-f]{2})h?)?(?:#([0-9]{1,9})(\+)?)?(?:=([0-9.]{1,8})%)?")
_ALL = 100.0
_NOISE_MOST = 20
_PRINTABLE = (0x20, 0x7E)

SPOILED_REQUEST = ("drop-request", "flip-request", "nak")
SPOILED_REPLY = ("drop-reply", "flip-reply", "split", "double", "stale-seq", "stale-cmd", "noise")

Struck = Mapping[str, str]
"""The faults of one exchange: argument by kind."""

NOTHING: Struck = {}


class FaultKind(NamedTuple):
    """`default`: the argument if none is given; empty if the kind has none."""

    default: str
    means: str


KINDS: Mapping[str, FaultKind] = {
    "drop-request": FaultKind("", "the request does not reach the machine"),
    "flip-request": FaultKind("", "one bit of the request is flipped on its way"),
    "nak": FaultKind("", "the machine answers NAK to a good request"),
    "silent": FaultKind("5", "the machine hears and says nothing for ARG seconds, this request included"),
    "slow": FaultKind("1", "the machine works ARG seconds on it without SYN"),
    "work": FaultKind("1", "the machine works ARG seconds on it, with SYN as usual"),
    "refuse": FaultKind("Refused", "the machine refuses with E: and ARG, and executes nothing"),
    "syn-storm": FaultKind("0.3", "SYN every 20 ms for ARG seconds before the command is executed"),
    "lose-invoice": FaultKind("", "the open invoice is gone before the command is executed"),
    "foreign": FaultKind("1000", "another program certifies ARG francs on the machine before the command is executed"),
    "cut-before": FaultKind("0.3", "power cut before the command is executed; back after ARG seconds"),
    "cut-executed": FaultKind("0.3", "power cut after the command is executed, before its answer"),
    "cut-after": FaultKind("0.3", "power cut after the answer"),
    "unplug-before": FaultKind("1", "the port vanishes for ARG seconds before the machine hears the request"),
    "unplug": FaultKind("1", "the port vanishes after the command is executed, before its answer"),
    "unplug-after": FaultKind("1", "the port vanishes after the answer"),
    "nonsense": FaultKind("", "executed, but the answer is a good frame full of rubbish"),
    "drop-reply": FaultKind("", "the reply does not reach the client"),
    "flip-reply": FaultKind("", "one bit of the reply is flipped on its way"),
    "split": FaultKind("0.02", "the reply comes in two pieces, ARG seconds apart"),
    "double": FaultKind("", "the reply comes twice"),
    "late": FaultKind("4", "the line holds the reply back for ARG seconds"),
    "stale-seq": FaultKind("", "a reply of another SEQ comes first"),
    "stale-cmd": FaultKind("", "a reply of another command comes first"),
    "noise": FaultKind("", "random bytes come before the reply"),
    "spoil": FaultKind("", "one of the short line faults, drawn for request and reply separately"),
}


class FaultRule:
    """One ITEM, with the number of frames it has matched."""

    __slots__ = ("argument", "command", "kind", "nth", "onward", "rate", "seen")

    def __init__(self, item: str) -> None:
        match = _ITEM.fullmatch(item.strip())
        if match is None or match[1] not in KINDS:
            raise ValueError(f"{item!r} is not a fault; known are {', '.join(KINDS)}")
        self.kind = match[1]
        self.argument = match[2] or KINDS[self.kind].default
        self.command = int(match[3], 16) if match[3] else None
        self.nth = int(match[4]) if match[4] else None
        self.onward = match[5] is not None or match[4] is None
        self.rate = float(match[6]) if match[6] else _ALL
        self.seen = 0
        self._check_argument(item)

    def _check_argument(self, item: str) -> None:
        default = KINDS[self.kind].default
        if not default and self.argument:
            raise ValueError(f"{item!r}: {self.kind} takes no argument")
        if default[:1].isdigit() and not float(self.argument) >= 0:
            raise ValueError(f"{item!r}: the argument is a number of at least 0")

    def matches(self, command: int) -> bool:
        if self.command is not None and command != self.command:
            return False
        self.seen += 1
        if self.nth is None:
            return True
        return self.seen >= self.nth if self.onward else self.seen == self.nth


class FaultPlan:
    """Draws in the order of rules and frames: the same seed with the same traffic gives the same faults."""

    def __init__(self, spec: str = "", seed: int = 0) -> None:
        self.seed = seed
        self.struck: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._rules: list[FaultRule] = []
        self.add(spec)

    def add(self, spec: str) -> None:
        """Raises ValueError, and adds nothing, if any item is invalid."""
        self._rules += [FaultRule(item) for item in spec.split(",") if item.strip()]

    def clear(self) -> None:
        self._rules.clear()

    def strike(self, command: int) -> Struck:
        """Faults of this request and its reply."""
        if not self._rules:
            return NOTHING
        struck: dict[str, str] = {}
        for rule in self._rules:
            if rule.matches(command):
                struck.update(self._draw(rule))
        self.struck.update(struck.keys())
        return struck

    def _draw(self, rule: FaultRule) -> Iterable[tuple[str, str]]:
        choices = (SPOILED_REQUEST, SPOILED_REPLY) if rule.kind == "spoil" else ((rule.kind,),)
        for kinds in choices:
            if self._random.random() * _ALL < rule.rate:
                kind = self._random.choice(kinds)
                yield kind, rule.argument or KINDS[kind].default

    def flip(self, data: bytes) -> bytes:
        flipped = bytearray(data)
        flipped[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        return bytes(flipped)

    def noise(self) -> bytes:
        return self._random.randbytes(self._random.randint(1, _NOISE_MOST))

    def rubbish(self) -> bytes:
        return bytes(self._random.randint(*_PRINTABLE) for _ in range(self._random.randint(1, 60)))

    def distort(self, reply: MachineReply, previous: MachineReply | None, struck: Struck) -> list[tuple[float, bytes]]:
        """The bytes that the client receives instead of `reply`: pieces with their delay in seconds."""
        if "drop-reply" in struck:
            return []
        frame = encode(reply)
        if "flip-reply" in struck:
            frame = self.flip(frame)
        late = float(struck.get("late", "0"))
        pieces = [(late, self._before(reply, previous, struck) + frame)]
        if "split" in struck:
            whole = pieces[0][1]
            cut = self._random.randrange(1, len(whole))
            pieces = [(late, whole[:cut]), (late + float(struck["split"]), whole[cut:])]
        if "double" in struck:
            pieces.append((pieces[-1][0], frame))
        return pieces

    def _before(self, reply: MachineReply, previous: MachineReply | None, struck: Struck) -> bytes:
        """Stale replies have plausible data: an older answer, or this one."""
        older = previous or reply
        before = self.noise() if "noise" in struck else b""
        if "stale-seq" in struck:
            seq = older.seq if older.seq != reply.seq else 0x20 + (reply.seq - 0x20 + 1) % 0x60
            before += encode(MachineReply(seq, reply.cmd, older.data, older.status))
        if "stale-cmd" in struck:
            command = older.cmd if older.cmd != reply.cmd else 0xC1 if reply.cmd != 0xC1 else 0xC2  # noqa: PLR2004
            before += encode(MachineReply(reply.seq, command, older.data, older.status))
        return before
