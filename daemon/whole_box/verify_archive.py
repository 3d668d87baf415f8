"""Checks the yearly archive of mcfd: python3 -I verify_archive.py ARCHIVE [FINGERPRINT]

Needs Python 3.9 or newer and nothing else; no part of mcfd, no network. What it checks: every byte of the file stands
where it belongs (tar headers and padding too), each part has the SHA-256 of the manifest, the manifest is signed
(Ed25519), every certification, closure and entry continues the hash chain, and Z, months and years are what their
invoices come to. Records that a disk had lost are named; the box says what they came to. Each fault is named with its
part. The signature says that all of it is of one box; whose box that is, the fingerprint says: compare it with that on
the shop's papers, or give it as FINGERPRINT.

Exit status: 0 all is right, 1 something is not, 2 the file cannot be read.
"""

import base64
import gzip
import hashlib
import io
import json
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

Note = Callable[[str, str], None]
Line = dict[str, Any]
Point = tuple[int, int, int, int]

BLOCK = 512
MOST = 20
FORMAT = 1
MANIFEST, SIGNATURE = "manifest.json", "signature.txt"
CONTEXT = b"mcfd archive of a year 1\n"
CREDITS = ("FA", "EA")


# -- the container: a tar in which names and sizes of the parts determine every other byte -----------------------------
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
NUMBERS = dict(zip(range(0xCC, 0xD4), (">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q")))
LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xDC: ">H", 0xDD: ">I"}
FORMS = {**NUMBERS, **LENGTHS}
SIMPLE = {0xC0: None, 0xC2: False, 0xC3: True}
FIGURES = ("certs_count", "total_ttc", "total_ht", "total_tva")


def header(name: str, size: int) -> bytes:
    """The only valid header of a part."""
    fields = name.encode().ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"%011o\0" % size + b"00000000000\0"
    block = (fields + b" " * 8 + b"0").ljust(257, b"\0") + b"ustar\000"
    block = block.ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


class Broken(Exception):
    """The rest of the file cannot be checked."""


def read_part(file: BinaryIO, name: str, size: int | None, note: Note) -> bytes:
    """Reads a part with header and padding; without `size` the header has it."""
    found = file.read(BLOCK)
    if size is None:
        try:
            size = int(found[124:135], 8)
        except ValueError:
            raise Broken(name, "its header does not say its size") from None
    if found != header(name, size):
        note(name, "its header was changed")
    content = file.read(size)
    if len(content) < size:
        raise Broken(name, "its end is missing")
    if file.read(-size % BLOCK) != b"\0" * (-size % BLOCK):
        note(name, "what fills it up to the next header was changed")
    return content


# -- Ed25519, as in RFC 8032 -------------------------------------------------------------------------------------------


def add(a: Point, b: Point) -> Point:
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar: int, point: Point) -> Point:
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point = add(point, point)
        scalar >>= 1
    return total


def decompress(data: bytes) -> Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")) or (0, 1, 1, 0)


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    a, r = decompress(public), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = multiply(s, BASE), add(r, multiply(h, a))
    return not ((left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P)


def signature_text(key: bytes, manifest: bytes, signature: bytes) -> bytes:
    return (
        f"mcfd archive signature 1\nkey {key.hex()}\nmanifest {manifest.hex()}\nsignature {signature.hex()}\n".encode()
    )


def fingerprint(public: bytes) -> str:
    """For people and paper: 32 hex digits in groups of four."""
    digits = hashlib.sha256(public).hexdigest()[:32]
    return "-".join(digits[at : at + 4] for at in range(0, len(digits), 4))


def check_signature(manifest: bytes, text: bytes, note: Note) -> bytes | None:
    """The public key; None if the signature is invalid."""
    try:
        key, digest, signature = (bytes.fromhex(line.split()[1]) for line in text.decode().splitlines()[1:4])
    except (ValueError, IndexError):
        key = digest = signature = b""
    if len(key) != 32 or len(signature) != 64 or text != signature_text(key, digest, signature):
        note(SIGNATURE, "is no signature")
        return None
    ours = hashlib.sha256(manifest).digest()
    if is_signed(key, CONTEXT + manifest, signature):
        if digest != ours:
            note(SIGNATURE, "names another manifest")
        return key
    note(SIGNATURE if digest == ours else MANIFEST, "the signature does not hold")
    return None


# -- MessagePack, the part that is hashed ------------------------------------------------------------------------------


def pack(value: Any) -> bytes:
    if value is None:
        return b"\xc0"
    if isinstance(value, int):
        return struct.pack(">b", value) if -32 <= value < 128 else marked(NUMBERS, value)
    if isinstance(value, (list, tuple)):
        start = bytes([0x90 | len(value)]) if len(value) < 16 else marked((0xDC, 0xDD), len(value))
        return start + b"".join(map(pack, value))
    if isinstance(value, bytes):
        return marked((0xC4, 0xC5, 0xC6), len(value)) + value
    data: bytes = value.encode()
    return (bytes([0xA0 | len(data)]) if len(data) < 32 else marked((0xD9, 0xDA, 0xDB), len(data))) + data


def marked(marks: Iterable[int], number: int) -> bytes:
    """Encodes with the first of `marks` whose form is large enough."""
    for mark in marks:
        try:
            return bytes([mark]) + struct.pack((FORMS)[mark], number)
        except struct.error:
            continue
    raise ValueError("too much")


def unpack(file: io.BytesIO) -> Any:
    """Decodes an invoice in its chained form."""
    mark = file.read(1)[0]
    if mark < 0x80 or mark >= 0xE0:
        return mark if mark < 0x80 else mark - 256
    if mark in SIMPLE:
        return SIMPLE[mark]
    form = (FORMS).get(mark, "")
    number = (
        struct.unpack(form, file.read(struct.calcsize(form)))[0] if form else mark & (0x1F if mark >= 0xA0 else 0x0F)
    )
    if mark in NUMBERS:
        return number
    if mark < 0xA0 or mark in (0xDC, 0xDD):
        return [unpack(file) for _ in range(number)]
    content = file.read(number)
    return content if mark in (0xC4, 0xC5, 0xC6) else content.decode()


# -- the chain and the totals ------------------------------------------------------------------------------------------


class Chain:
    """Takes the lines of `chain.jsonl.gz` in order."""

    def __init__(self, manifest: Line, note: Callable[[str], None]) -> None:
        self.note = note
        self.hash = bytes.fromhex(manifest["chain"]["start"])
        self.counts = dict.fromkeys(manifest["chain"]["counts"], 0)
        self.is_after_loss = False
        self.is_unsure = self.is_closed_unsure = manifest["chain"].get("is_unsure", False)
        self.open = dict.fromkeys(FIGURES, 0)
        self.days: list[tuple[int, str, dict[str, int], bool]] = []
        self.after_z = manifest["chain"]["after_z"]
        self.closed: dict[str, tuple[Line, Line]] = {}
        self.year = manifest["year"], manifest["number"]

    def take(self, line: Line) -> None:
        kind = line["kind"]
        self.counts[kind] += 1
        if kind == "lost":
            self.take_lost(line)
            return
        link, name = getattr(self, "take_" + kind)(line)
        found = hashlib.sha256(self.hash + pack(link)).digest()
        if found.hex() != line["hash"] and not self.is_after_loss:
            self.note(f"{name} does not continue the chain")
        self.hash, self.is_after_loss = bytes.fromhex(line["hash"]), False

    def take_lost(self, line: Line) -> None:
        """Without figures: they are in those of the next such line, and the totals in between cannot be checked."""
        self.is_after_loss, self.is_unsure = True, line["figures"] is None
        for figure, value in (line["figures"] or {}).items():
            self.open[figure] += value

    def take_certification(self, line: Line) -> tuple[list[Any], str]:
        name = f"invoice {line['number']} (record {line['seq']})"
        content = base64.b64decode(line["invoice"])
        fields = ("id", "seq", "number", "type", "state", "begun_at", "ended_at", "base", "counters", "total_ttc")
        rest = ("code", "machine_time", "ifu", "reason", "line_ms", "duration_ms", "request_id")
        link = ["certification", *(line[each] for each in fields + rest), content]
        if line["fc"] is not None:
            link.append(line["fc"])
        if line["state"] == "certified":
            self.add_up(line, unpack(io.BytesIO(content)), name)
        return link, name

    def add_up(self, line: Line, invoice: list[Any], name: str) -> None:
        number, kind, items, taxes, total = invoice[0], invoice[1], invoice[7], invoice[9], invoice[10]
        if (number, kind, total) != (line["number"], line["type"], line["total_ttc"]):
            self.note(f"{name} is another invoice than the one that was chained")
        journal = line["journal"]
        if (journal["invoiceNumber"], journal["invoiceType"], journal["totalTtc"]) != (number, kind, total):
            self.note(f"{name} is shown otherwise than it was chained")
        if not items:  # taken from the machine after a restore: it counts as unexplained
            return
        sign = -1 if kind in CREDITS else 1
        sums = (1, sign * total, sign * sum(tax[2] for tax in taxes), sign * sum(tax[3] for tax in taxes))
        for figure, value in zip(FIGURES, sums):
            self.open[figure] += value

    def take_closure(self, line: Line) -> tuple[list[Any], str]:
        name, body = f"Z {line['z_number']}", line["body"].encode()
        fields = ("z_number", "report_id", "period_start", "period_end", "created_at", "certs_count", "total_ttc")
        rest = ("counters", "unexplained", "first_seq", "last_seq")
        is_sure = not (self.is_unsure or self.is_closed_unsure)
        self.is_closed_unsure = self.is_unsure
        if is_sure:
            self.compare(name, json.loads(body), self.open)
        self.days.append((line["z_number"], line["hash"], self.open, is_sure))
        self.open = dict.fromkeys(FIGURES, 0)
        return ["closure", *(line[each] for each in fields + rest), body], name

    def take_entry(self, line: Line) -> tuple[list[Any], str]:
        body = line["body"].encode()
        entry = json.loads(body)
        if entry["type"] == "calendar":
            self.take_calendar(entry)
        return ["entry", line["after_seq"], line["after_z"], line["at"], body], f"entry {line['id']} ({entry['type']})"

    def take_calendar(self, entry: Line) -> None:
        name, report = f"closure of {entry['period']}", json.loads(entry["body"])
        before, self.closed[entry["kind"]] = self.closed.get(entry["kind"]), (entry, report)
        if entry["after_z"] < self.after_z:  # of the previous year
            return
        days = [day for day in self.days if entry["after_z"] < day[0] <= entry["upto_z"]]
        is_sure = all(day[3] for day in days)
        sums = {figure: sum(day[2][figure] for day in days) for figure in FIGURES if is_sure}
        ends: Line = {"z_chain_head": days[-1][1] if days else "", "z_count": len(days)}
        ends.update(first_z=days[0][0] if days else None, last_z=days[-1][0] if days else None)
        self.compare(name, report, {**sums, **ends, "number": entry["number"], "period": entry["period"]})
        if before is not None:
            grand = {figure: before[1]["grand_total"][figure] + value for figure, value in sums.items()}
            self.compare(f"grand total of {entry['period']}", report["grand_total"], grand)

    def compare(self, name: str, found: Line, expected: Line) -> None:
        for figure, value in expected.items():
            if found[figure] != value:
                self.note(f"{name}: {figure} is {found[figure]}, its invoices give {value}")

    def end(self, manifest: Line) -> None:
        chain = manifest["chain"]
        if (self.hash.hex(), self.counts) != (chain["end"], chain["counts"]):
            self.note("it is not all of the chain that the manifest names")
        entry, _ = self.closed.get("year", ({"period": "", "number": 0}, None))
        if (entry["period"], entry["number"]) != self.year:
            self.note("it does not end with the closure of its year")


def check_chain(lines: Iterable[bytes], manifest: Line, note: Callable[[str], None]) -> None:
    chain = Chain(manifest, note)
    for line in lines:
        chain.take(json.loads(line))
    chain.end(manifest)


def check_audit(lines: Iterable[bytes], _: Line, note: Callable[[str], None]) -> None:
    previous = None
    for line in lines:
        entry = json.loads(line)
        fields = {key: entry[key] for key in ("action", "actor", "address", "at", "detail", "subject")}
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        before = bytes.fromhex(entry["previous"])
        is_next = previous is None or before == previous
        previous = bytes.fromhex(entry["hash"])
        if not is_next or hashlib.sha256(before + canonical).digest() != previous:
            note(f"entry {entry['id']} does not follow from the one before it")


CHECKS = {"chain.jsonl.gz": check_chain, "audit.jsonl.gz": check_audit}


def check_part(content: bytes, listing: Line, manifest: Line, note: Note) -> None:
    name = listing["name"]
    if hashlib.sha256(content).hexdigest() != listing["sha256"]:
        note(name, "was changed: it has another SHA-256 than the manifest says")
    elif name in CHECKS:
        try:
            CHECKS[name](gzip.GzipFile(fileobj=io.BytesIO(content)), manifest, lambda text: note(name, text))
        except Exception as error:
            note(name, f"cannot be read ({type(error).__name__}: {error})")


def check(file: BinaryIO, note: Note) -> tuple[Line, bytes | None]:
    """Calls `note(part, text)` for each fault. Returns the manifest, and the signer's public key if it is valid."""
    content = read_part(file, MANIFEST, None, note)
    key = check_signature(content, read_part(file, SIGNATURE, None, note), note)
    try:
        manifest = json.loads(content)
        if manifest["format"] != FORMAT:
            raise Broken(MANIFEST, "is of a newer version of mcfd")
        parts = [{"name": str(t["name"]), "size": int(t["size"]), "sha256": t["sha256"]} for t in manifest["parts"]]
    except (ValueError, KeyError, TypeError):
        raise Broken(MANIFEST, "cannot be read") from None
    for listing in parts:
        check_part(read_part(file, listing["name"], listing["size"], note), listing, manifest, note)
    if file.read(2 * BLOCK + 1) != b"\0" * 2 * BLOCK:
        note("end of the file", "was changed, is missing, or something stands behind it")
    return manifest, key


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__)
        return 2
    faults: list[str] = []
    key = None
    try:
        with open(arguments[0], "rb") as file:
            manifest, key = check(file, lambda part, text: faults.append(f"{part}: {text}"))
    except Broken as broken:
        faults.append(": ".join(broken.args))
    except OSError as error:
        print(f"{arguments[0]} cannot be read: {error}")
        return 2
    wanted = arguments[1].replace("-", "").lower() if len(arguments) > 1 else ""
    if key is not None and wanted not in ("", fingerprint(key).replace("-", "")):
        faults.append(f"{SIGNATURE}: is of another box, {fingerprint(key)}")
    for fault in faults[:MOST]:
        print(f"FAULT  {fault}")
    if faults or key is None:
        print(f"{len(faults)} fault(s): this archive is not as it was made")
        return 1
    counts = manifest["chain"]["counts"]
    print(
        f"All is right: {manifest['nim']}, {manifest['year']}, {counts['certification']} attempts, {counts['closure']} Z"
    )
    if counts.get("lost"):
        print(
            f"Records that a disk had lost are missing in {counts['lost']} place(s); its Z, months and years count them"
        )
    print(f"Signed by the box with the fingerprint {fingerprint(key)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
