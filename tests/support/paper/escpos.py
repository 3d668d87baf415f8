"""Reads ESC/POS back as a printer would, from the makers' tables, knowing nothing of what wrote it.

Whatever it does not know is an error: a printer would print the parameters of such a command as characters."""

from dataclasses import dataclass, field

CODE_PAGES = {2: "cp850", 16: "cp1252", 19: "cp858"}


@dataclass
class Printed:
    """`lines` as (text, bold, tall); `codes` the QR codes as (content, dots a module, error correction); `pictures` as
    rows of dots, `#` black."""

    lines: list = field(default_factory=list)
    codes: list = field(default_factory=list)
    pictures: list = field(default_factory=list)
    cut: bool = False
    initialized: bool = False

    @property
    def text(self):
        return "".join(f"{text}\n" for text, _, _ in self.lines)

    def picture(self):
        """For people: what came out, with the styles as marks."""
        marks = {(False, False): " ", (True, False): "*", (True, True): "#", (False, True): "^"}
        body = "".join(f"{marks[bold, tall]}|{text}\n" for text, bold, tall in self.lines)
        return body + "".join(f"Q|{content} ({dots} dots, {level})\n" for content, dots, level in self.codes)


class Printer:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.out = Printed()
        self.page, self.bold, self.tall = "cp437", False, False
        self.line = b""
        self.dots, self.level, self.content = 3, "L", ""

    def take(self, count):
        taken = self.data[self.at : self.at + count]
        assert len(taken) == count, "a command ends in the middle"
        self.at += count
        return taken

    def run(self):
        while self.at < len(self.data):
            byte = self.take(1)
            if byte == b"\x1b":
                self.escape(self.take(1))
            elif byte == b"\x1d":
                self.group(self.take(1))
            elif byte == b"\n":
                self.out.lines.append((self.line.decode(self.page), self.bold, self.tall))
                self.line = b""
            else:
                assert byte >= b" ", f"control character {byte!r}"
                self.line += byte
        assert self.line == b"", "text after the last line feed is never printed"
        return self.out

    def escape(self, command):
        if command == b"@":
            self.out.initialized = True
            self.bold = self.tall = False
            return
        value = self.take(1)[0]
        match command:
            case b"R":
                assert value == 0
            case b"t":
                self.page = CODE_PAGES[value]
            case b"E":
                self.bold = bool(value & 1)
            case b"a":
                assert value in (0, 1, 2)
            case _:
                raise AssertionError(f"ESC {command!r} is not known")

    def group(self, command):
        if command == b"!":
            (size,) = self.take(1)
            assert size >> 4 == 0, "twice as wide: the columns would no longer fit"
            self.tall = bool(size & 7)
        elif command == b"V":
            assert self.take(2) == b"B\0"
            self.out.cut = True
        elif command == b"v":
            assert self.take(2) == b"0\0"
            across, high = (int.from_bytes(self.take(2), "little") for _ in "xy")
            assert 0 < across <= 72, "wider than the paper"
            assert 0 < high < 2304, "the makers' limit"
            rows = [self.take(across) for _ in range(high)]
            self.out.pictures.append(["".join(".#"[int(bit)] for byte in row for bit in f"{byte:08b}") for row in rows])
        elif command == b"(":
            assert self.take(1) == b"k"
            self.symbol(self.take(int.from_bytes(self.take(2), "little")))
        else:
            raise AssertionError(f"GS {command!r} is not known")

    def symbol(self, parameters):
        assert parameters[:1] == b"1", "a QR code"
        match parameters[1], parameters[2:]:
            case 0x41, model:
                assert model == b"2\0"
            case 0x43, size:
                self.dots = size[0]
                assert 1 <= self.dots <= 16
            case 0x45, level:
                self.level = "LMQH"[level[0] - 0x30]
            case 0x50, data:
                assert data[:1] == b"0"
                self.content = data[1:].decode()
            case 0x51, b"0":
                self.out.codes.append((self.content, self.dots, self.level))
            case other:
                raise AssertionError(f"GS ( k {other} is not known")


def printed(data):
    return Printer(data).run()
