"""Text fields of the data part (protocol section 2), to and from the line, and numbers to it (from it:
`replies.numbers`). Prices are in hundredths of a franc, quantities in thousandths."""

import re

from bridge.errors import Unsendable
from common.language.reasons import FRAME_OVERFLOW

_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), " ")
_ESCAPES = {"\r": "^xa;", "\n": "^xd;", ",": "^x2c;", "<": "^lt;", ">": "^gt;", "&": "^amp;"}
_TO_LINE = _CONTROL | {ord(char): escape for char, escape in _ESCAPES.items()}
_FROM_LINE = {escape: char for char, escape in _ESCAPES.items()}
_ESCAPE = re.compile(r"\^(?:xa|xd|x2c|lt|gt|amp);")
_UNIT = re.compile(r"\^(?:xa|xd|x2c|lt|gt|amp);|.", re.DOTALL)

GROUPS = "ABCDEFGHIJKLMNOP"

UTF_8 = "utf-8"
_OTHER = "cp1252"


def escape(text: str) -> str:
    return text.translate(_TO_LINE)


def unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _FROM_LINE[match[0]], text)


def encode(text: str, code_page: str = UTF_8) -> bytes:
    return text.encode(code_page, "replace")


def decode(data: bytes, code_page: str = UTF_8) -> str:
    """Data that is not UTF-8 is taken for Windows' code page, as of other firmware; there every byte is a character."""
    if code_page == UTF_8:
        try:
            return data.decode()
        except UnicodeDecodeError:
            code_page = _OTHER
    return data.decode(code_page, "replace")


class Free(str):
    """A free text, not escaped, that may be cut to fit its frame."""

    __slots__ = ()


def compose(parts: list[str], limit: int, code_page: str = UTF_8) -> bytes:
    """Joins `parts` into at most `limit` bytes. `Free` parts are escaped and, if necessary, cut, the longest first.
    Other parts are never cut: Unsendable if they alone are too long."""
    return b"".join(_fitted(parts, _whole(parts, code_page), limit, code_page))


def stored_texts(parts: list[str], limit: int, code_page: str = UTF_8) -> list[str]:
    """The `Free` parts as `compose` sends them: unchanged, cut, or with `?` for what the code page lacks."""
    whole = _whole(parts, code_page)
    return [
        str(part) if code_page == UTF_8 and len(piece) == len(uncut) else unescape(decode(piece, code_page))
        for part, piece, uncut in zip(parts, _fitted(parts, whole, limit, code_page), whole, strict=True)
        if isinstance(part, Free)
    ]


def _whole(parts: list[str], code_page: str) -> list[bytes]:
    return [encode(escape(part) if isinstance(part, Free) else part, code_page) for part in parts]


def _fitted(parts: list[str], pieces: list[bytes], limit: int, code_page: str) -> list[bytes]:
    """`pieces` are the encoded parts without a limit."""
    total = sum(map(len, pieces))
    if total <= limit:
        return pieces
    free = [len(piece) for part, piece in zip(parts, pieces, strict=True) if isinstance(part, Free)]
    room = limit - (total - sum(free))
    if room < 0:
        raise Unsendable(FRAME_OVERFLOW(count=total - sum(free), limit=limit))
    cap = _common_cap(free, room)
    return [
        cut(part, cap, code_page) if isinstance(part, Free) else piece
        for part, piece in zip(parts, pieces, strict=True)
    ]


def _common_cap(sizes: list[int], room: int) -> int:
    """The largest size that fits if all longer texts are cut to it; together they are longer than `room`."""
    left, longer = room, sorted(sizes)
    while longer[0] <= left // len(longer):
        left -= longer.pop(0)
    return left // len(longer)


def cut(text: str, limit: int, code_page: str = UTF_8) -> bytes:
    """At most `limit` bytes of the escaped text, never cut inside a character or an escape."""
    content = bytearray()
    for unit in _UNIT.findall(escape(text)):
        piece = encode(unit, code_page)
        if len(content) + len(piece) > limit:
            break
        content += piece
    return bytes(content)


def price(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def quantity(thousandths: int) -> str:
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def short_price(hundredths: int) -> str:
    """Without needless decimals: `50` or `50.25`."""
    return price(hundredths).removesuffix(".00")
