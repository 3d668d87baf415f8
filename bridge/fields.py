"""Text fields and numbers of the data part (protocol section 2), to and from the line.

Money is in whole XOF, prices in hundredths, quantities in thousandths, rates in hundredths of a percent.
"""

from __future__ import annotations

import re

from bridge.errors import Nonsense, Unsendable

_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), " ")
_ESCAPES = {"\r": "^xa;", "\n": "^xd;", ",": "^x2c;", "<": "^lt;", ">": "^gt;", "&": "^amp;"}
_TO_LINE = _CONTROL | {ord(char): escape for char, escape in _ESCAPES.items()}
_FROM_LINE = {escape: char for char, escape in _ESCAPES.items()}
_ESCAPE = re.compile(r"\^(?:xa|xd|x2c|lt|gt|amp);")
_UNIT = re.compile(r"\^(?:xa|xd|x2c|lt|gt|amp);|.", re.DOTALL)

_COUNTER = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,2}))?")
_LONGEST = 15
_TIME = re.compile(r"[0-9]{14}")
_CODE = re.compile(r"[0-9A-Za-z]{1,64}")
_SHOWN = 40


def escape(text: str) -> str:
    return text.translate(_TO_LINE)


def unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _FROM_LINE[match[0]], text)


def as_machine_tells(text: str) -> str:
    """A text as it comes back from a machine that kept it.

    A `^` is not escaped (C fact), so a number such as `A^lt;1` comes back as `A<1`: compare numbers in this form.
    """
    return unescape(escape(text))


def encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def decode(data: bytes) -> str:
    """Texts of firmware that is not UTF-8 become readable enough; what matters in an answer is ASCII."""
    return data.decode("utf-8", "replace")


class Free(str):
    """A free text, not escaped yet, that may be cut to make its frame fit."""

    __slots__ = ()


def compose(parts: list[str], limit: int) -> bytes:
    """Join `parts` into at most `limit` bytes: `Free` ones escaped and, where needed, cut, longest first.

    Cutting is never an error; a fixed part is never cut, and Unsendable when those alone are too long."""
    pieces = [encode(escape(part)) if isinstance(part, Free) else encode(part) for part in parts]
    total = sum(map(len, pieces))
    if total <= limit:
        return b"".join(pieces)
    free = [len(piece) for part, piece in zip(parts, pieces, strict=True) if isinstance(part, Free)]
    room = limit - (total - sum(free))
    if room < 0:
        raise Unsendable(f"{total - sum(free)} bytes that must not be cut do not fit into a frame's {limit}")
    cap = _common_cap(free, room)
    return b"".join(
        cut(part, cap) if isinstance(part, Free) else piece for part, piece in zip(parts, pieces, strict=True)
    )


def _common_cap(sizes: list[int], room: int) -> int:
    """The largest size to which all longer ones are cut so that they fit together."""
    left = room
    for index, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - index)
        if size > share:
            return share
        left -= size
    return max(sizes)


def cut(text: str, limit: int) -> bytes:
    """At most `limit` bytes of the escaped text, ending at a character, not inside of one or of an escape."""
    kept = bytearray()
    for unit in _UNIT.findall(escape(text)):
        piece = encode(unit)
        if len(kept) + len(piece) > limit:
            break
        kept += piece
    return bytes(kept)


def price(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def quantity(thousandths: int) -> str:
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def short_price(hundredths: int) -> str:
    """Without needless decimals, as `50` or `50.25`."""
    return price(hundredths).removesuffix(".00")


def read_counter(text: str, what: str) -> int:
    if not _COUNTER.fullmatch(text):
        raise nonsense(what, text)
    return int(text)


def _is_plain(text: str) -> bool:
    """A whole number without a point, as most are."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST


def read_hundredths(text: str, what: str) -> int:
    """`18`, `18.0` and `18.00` are all 1800."""
    if _is_plain(text):
        return int(text) * 100
    match = _DECIMAL.fullmatch(text)
    if not match:
        raise nonsense(what, text)
    return int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0"))


def read_money(text: str, what: str) -> int:
    """Whole XOF, as `15000`, `15000.0` or `15000.00`."""
    if _is_plain(text):
        return int(text)
    francs, cents = divmod(read_hundredths(text, what), 100)
    if cents:
        raise nonsense(what, text)
    return francs


def read_time(text: str, what: str) -> str:
    if not _TIME.fullmatch(text):
        raise nonsense(what, text)
    return text


def read_code(text: str) -> str:
    """A certification code without the dashes that some firmware prints.

    Its 24 characters are not insisted on: an odd code of an invoice that is certified must not get lost."""
    code = text.replace("-", "")
    if not _CODE.fullmatch(code):
        raise nonsense("certification code", text)
    return code


def nonsense(what: str, text: str) -> Nonsense:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return Nonsense(f"{what} cannot be read: {shown!r}")
