"""PNG files of every kind there is, written as the specification says, for tests of what reads them."""

import struct
import zlib

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def png(rows, *, kind=0, depth=8, palette=b"", alphas=b"", filters=(0,), after=b""):
    """`rows` of pixels, each a number or a tuple of as many as `kind` has; row by row the next of `filters`. `after`: more data than the pixels."""
    bits = depth * CHANNELS[kind]
    back = max(1, bits // 8)
    above = bytes((len(rows[0]) * bits + 7) // 8)
    data = b""
    for at, row in enumerate(rows):
        plain = packed([value for pixel in row for value in (pixel if isinstance(pixel, tuple) else (pixel,))], depth)
        chosen = filters[at % len(filters)]
        data += bytes([chosen]) + filtered(chosen, plain, above, back)
        above = plain
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), depth, kind, 0, 0, 0)
    extra = (chunk(b"PLTE", palette) if palette else b"") + (chunk(b"tRNS", alphas) if alphas else b"")
    body = zlib.compress(data + after)
    middle = len(body) // 2  # in two chunks, as most programs write more than one
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + extra
        + chunk(b"IDAT", body[:middle])
        + chunk(b"IDAT", body[middle:])
        + chunk(b"IEND", b"")
    )


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def packed(values, depth):
    if depth == 8:
        return bytes(values)
    text = "".join(f"{value:0{depth}b}" for value in values)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8))


def filtered(kind, row, above, back):
    if kind == 0:
        return row
    out = bytearray()
    for at, byte in enumerate(row):
        left = row[at - back] if at >= back else 0
        corner = above[at - back] if at >= back else 0
        up = above[at]
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda value: abs(guess - value))
        out.append((byte - (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    return bytes(out)
