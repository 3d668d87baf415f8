"""Where a body ends: any bytes give content, an end, or one error; never more work than there are bytes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.api.http.bodies import FREE_CHUNKS, LONGEST_LINE, MOST_TRAILERS, BadChunk, ChunkedBody, SizedBody


def read(raw: bytes, size: int) -> tuple[bytes, bool, int]:
    """Content, whether it was complete, and how many bytes were left, when the bytes come `size` at a time."""
    body, buffer, content = ChunkedBody(), b"", b""
    for at in range(0, len(raw), size):
        buffer += raw[at : at + size]
        piece, used = body.take(buffer, 0)
        content += piece
        buffer = buffer[used:]
    return content, body.complete, len(buffer)


def chunked(*pieces: bytes, trailers: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n" + trailers + b"\r\n"


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(1, 70), st.binary(max_size=20))
def test_content_comes_out_as_it_went_in(pieces: list[bytes], size: int, rest: bytes) -> None:
    """Whatever it holds, however it is cut, and not a byte of what follows is touched."""
    assert read(chunked(*pieces) + rest, size) == (b"".join(pieces), True, len(rest))


@given(st.binary(max_size=200), st.integers(1, 70))
def test_any_bytes_are_content_or_an_error(raw: bytes, size: int) -> None:
    """And the same however they are cut."""
    try:
        found = read(raw, size)
    except BadChunk:
        with pytest.raises(BadChunk):
            read(raw, len(raw))
    else:
        assert read(raw, max(1, len(raw))) == found


@pytest.mark.parametrize(
    "raw",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b" 1\r\n",
        b"123456789\r\n",
        b"1\n",
        b"1;\x00\r\n",
        b"1\r\nab\r\n",
        b"1\r\na\n0\r\n\r\n",
        b"0\r\nno trailer\r\n\r\n",
        b"0\r\nX : 1\r\n\r\n",
        b"1" * 300,
    ],
)
def test_what_is_no_chunk(raw: bytes) -> None:
    """A size that is none or written in another way, content longer than its size, bare line feeds, bad trailers, no end of a line."""
    with pytest.raises(BadChunk):
        read(raw + b"x" * 300, 1000)


def test_what_follows_a_chunk_is_its_end() -> None:
    """Or its size was not what it is, and what comes then is anybody's guess."""
    with pytest.raises(BadChunk, match="longer than it says"):
        read(b"3\r\nhello\r\n0\r\n\r\n", 100)


def test_extensions_and_trailers_are_read_over() -> None:
    """RFC 9112 7.1.1 and 7.1.2: they change nothing."""
    raw = b'3;name="v; w"\r\nabc\r\n0\r\nETag: x\r\nX-Sum: 1\r\n\r\nNEXT'
    assert read(raw, 1) == (b"abc", True, 4)


@pytest.mark.parametrize("size", [1, 100_000])
def test_the_longest_line_and_a_byte_more(size: int) -> None:
    """Of a size with its extensions and of a trailer, its end not counted, however it comes."""
    for head, tail in ((b"1;", b"\r\na\r\n0\r\n\r\n"), (b"0\r\nX:", b"\r\n\r\n")):
        room = LONGEST_LINE - len(head.rpartition(b"\n")[2])
        assert read(head + b"x" * room + tail, size)[1]
        with pytest.raises(BadChunk, match="too long"):
            read(head + b"x" * (room + 1) + tail, size)


def test_only_so_many_trailers() -> None:
    """Each is a line that somebody has to look at."""
    assert read(b"0\r\n" + b"X: 1\r\n" * MOST_TRAILERS + b"\r\n", 100)[1]
    with pytest.raises(BadChunk, match="trailers"):
        read(b"0\r\n" + b"X: 1\r\n" * (MOST_TRAILERS + 1) + b"\r\n", 100)


def test_small_chunks_only_so_many() -> None:
    """A thousand of one byte are taken (small devices write so), and one more for each 64 bytes of the body; not a single one beyond."""
    few = chunked(*[b"x"] * (FREE_CHUNKS - 1))
    assert read(few, 4096)[:2] == (b"x" * (FREE_CHUNKS - 1), True)
    assert read(chunked(*[b"x"] * 1039), 4096)[1]
    with pytest.raises(BadChunk, match="small chunks"):
        read(chunked(*[b"x"] * 1040), 4096)
    assert read(chunked(*[b"x" * 100] * 5000), 4096)[1]


def test_blank_lines_cost_no_more_than_other_bytes() -> None:
    """Attack 1: 256 KiB of nothing else took the loop for a third of a second; they are content as any."""
    blank = b"\r\n\r\n" * 65536
    began = time.process_time()
    assert read(chunked(blank), 65536)[0] == blank
    assert time.process_time() - began < 0.1


def test_a_body_with_a_length() -> None:
    """So many bytes and no more; without any it is complete at once."""
    body = SizedBody(5)
    assert body.take(b"..abc", 2) == (b"abc", 5)
    assert not body.complete
    assert body.take(b"defg", 0) == (b"de", 2)
    assert body.complete
    assert SizedBody(0).complete


def test_the_longest_line() -> None:
    """256 bytes of a chunk's head are read, also where they come one at a time; the next one is refused before its line ends."""
    longest = b"3;" + b"v" * 254
    assert read(longest + b"\r\nabc\r\n0\r\n\r\n", 1) == (b"abc", True, 0)
    with pytest.raises(BadChunk, match="too long"):
        read(longest + b"vv", 1)
