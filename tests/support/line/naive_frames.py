"""A second coder of frames, written from docs/protocol.md section 1 without a look at bridge.frame: naive and slow."""

import tomllib
from pathlib import Path

VECTORS = Path(__file__).parents[2] / "vectors" / "frames.toml"


def naive_encode(seq: int, cmd: int, data: bytes, status: bytes | None = None) -> bytes:
    """A request, or with `status` a reply."""
    inside = [seq, cmd, *data]
    if status is not None:
        inside += [0x04, *status]
    covered = [0x20 + 1 + len(inside) + 1, *inside, 0x05]
    nibbles = f"{sum(covered) % 65536:04x}"
    return bytes([0x01, *covered, *(0x30 + int(nibble, 16) for nibble in nibbles), 0x03])


def naive_decode(raw: bytes) -> tuple[int, int, bytes, bytes | None]:
    """One whole good frame as (seq, cmd, data, status or None); ValueError for anything else."""
    body = raw[2:-6]
    at = body.find(0x04)
    data, status = (body[2:], None) if at < 0 else (body[2:at], body[at + 1 :])
    if naive_encode(body[0], body[1], data, status) != raw:
        raise ValueError(raw.hex(" "))
    return body[0], body[1], data, status


def parse_hex(text: str) -> bytes:
    """`01 24 41*3` is 01 24 41 41 41."""
    out = bytearray()
    for token in text.split():
        byte, _, times = token.partition("*")
        out += bytes.fromhex(byte) * int(times or "1")
    return bytes(out)


def load_vectors() -> dict[str, list[dict]]:
    return tomllib.loads(VECTORS.read_text())
