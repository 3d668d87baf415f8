"""Encrypted backups are files of age: `age`, mcfd and 0.1.0 open each other's; nothing changed or malformed passes."""

import io
import resource
import subprocess
from errno import ENOSPC
from pathlib import Path

import pytest
from support.age_forms import CHUNK, age_file, by_passphrase, for_recipient
from support.tools import need

from daemon.whole_box.sealed import (
    NotOpened,
    TooMuchToSeal,
    check_identity,
    is_by_passphrase,
    new_identity,
    opened,
    read_recipient,
    sealed,
)

WORDS = "six mots que personne ne devine"
LENGTHS = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 200_000)
Pair = tuple[str, str]


def close(content: bytes, recipient: str) -> bytes:
    target = io.BytesIO()
    with sealed(target, recipients=[recipient]) as file:
        for at in range(0, len(content), 1000):
            file.write(content[at : at + 1000])
    return target.getvalue()


def open_again(closed: bytes, identity: str) -> bytes:
    source = io.BytesIO(closed)
    assert not is_by_passphrase(source)
    with opened(source, identity=identity) as file:
        return file.read(7) + file.read()


def by_words(closed: bytes, words: str = WORDS) -> bytes:
    source = io.BytesIO(closed)
    assert is_by_passphrase(source)
    with opened(source, passphrase=words) as file:
        return file.read()


@pytest.fixture(scope="module")
def pair() -> Pair:
    return new_identity()


@pytest.mark.parametrize("length", LENGTHS)
def test_what_is_closed_opens_again(length: int, pair: Pair) -> None:
    """Also around the border of a chunk, and read in odd portions."""
    content = bytes(at % 251 for at in range(length))
    assert open_again(close(content, pair[1]), pair[0]) == content


def test_a_passphrase_opens_and_another_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong one is told as such. It works in memory: more than its limit is refused, and not a byte is written."""
    target = io.BytesIO()
    with sealed(target, passphrase=WORDS) as file:
        file.write(b"ledger")
    assert by_words(target.getvalue()) == b"ledger"
    with pytest.raises(NotOpened, match="passphrase is wrong"):
        by_words(target.getvalue(), WORDS + "x")
    monkeypatch.setattr("daemon.whole_box.sealed.MAX_BY_PASSPHRASE", 1000)
    target = io.BytesIO()
    with pytest.raises(TooMuchToSeal), sealed(target, passphrase=WORDS) as file:
        file.write(bytes(1001))
    assert target.getvalue() == b""


@pytest.mark.parametrize("length", LENGTHS)
def test_what_mcfd_0_1_0_closed_opens(length: int, pair: Pair) -> None:
    """For a key, and by a passphrase (scrypt, 2^16)."""
    content = bytes(at % 249 for at in range(length))
    assert open_again(age_file(for_recipient(pair[1]), content), pair[0]) == content
    if length in {0, CHUNK + 1}:
        assert by_words(age_file(by_passphrase(WORDS), content)) == content


@pytest.mark.parametrize("work", [23, 31, 63, 99])
def test_a_costly_passphrase_is_refused_before_it_costs(work: int) -> None:
    """What scrypt would take is known from the file; nothing of it is authenticated by then."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NotOpened, match="memory"):
        is_by_passphrase(io.BytesIO(age_file(by_passphrase(WORDS, work), b"x")))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_every_changed_byte_and_every_missing_end_is_noticed(pair: Pair) -> None:
    """Also a file that ends between two chunks, and by a reader that stops early."""
    closed = close(b"x" * 70_000, pair[1])
    places = [*range(0, 250, 7), len(closed) - 70_000, len(closed) - 1]
    damaged = [closed[:at] + bytes([closed[at] ^ 1]) + closed[at + 1 :] for at in places]
    head = len(close(b"", pair[1])) - 16
    damaged += [closed[: head + CHUNK + 16], closed[:-1], closed[:100], closed + b"x", b"PK"]
    for broken in damaged:
        with pytest.raises(NotOpened):
            open_again(broken, pair[0])
    closed = close(b"x" * 300_000, pair[1])
    source = io.BytesIO(closed[:-1] + bytes([closed[-1] ^ 1]))
    with pytest.raises(NotOpened), opened(source, identity=pair[0]) as file:
        assert file.read(10) == b"x" * 10


def test_a_target_that_takes_no_more_says_why(pair: Pair) -> None:
    """The disk's own error comes through, whatever writes at that moment."""

    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, _: object, /) -> int:
            raise OSError(ENOSPC, "No space left on device")

    def fill() -> None:
        with sealed(Full(), recipients=[pair[1]]) as file:  # type: ignore[arg-type]
            for _ in range(100):
                file.write(bytes(100_000))

    with pytest.raises(OSError, match="No space") as raised:
        fill()
    assert raised.value.errno == ENOSPC


def test_age_itself_opens_it_and_closes_for_us(tmp_path: Path, pair: Pair) -> None:
    """With Debian's `age`: a backup is readable without mcfd."""
    need("age")
    (tmp_path / "id").write_text(f"# made by a test\n{pair[0]}\n")
    content = bytes(range(256)) * 600
    command = ["age", "-d", "-i", str(tmp_path / "id")]
    ours = close(content, pair[1])
    assert subprocess.run(command, input=ours, capture_output=True, check=True, timeout=60).stdout == content
    theirs = subprocess.run(["age", "-r", pair[1]], input=content, capture_output=True, check=True, timeout=60).stdout
    assert open_again(theirs, check_identity((tmp_path / "id").read_text())) == content


def test_a_mistyped_key_is_none(pair: Pair) -> None:
    """Its checksum tells; small letters, groups and two lines are as good as the paper's capitals."""
    wrong = pair[1][:-1] + ("q" if pair[1][-1] != "q" else "p")
    for text in (wrong, "age1", pair[0], "ssh-ed25519 AAAA"):
        with pytest.raises(ValueError):  # noqa: PT011  whatever is wrong with it
            read_recipient(text)
    halves = f"{pair[0][:40]}\n  {pair[0][40:]}"
    for text in (f" {pair[0].lower()}\n", halves, f"# public key: {pair[1]}\n{pair[0]}\n{new_identity()[0]}"):
        assert check_identity(text) == pair[0]
    for text in ("", pair[1], pair[0][:-1], "# only a comment"):
        with pytest.raises(ValueError):  # noqa: PT011  as above
            check_identity(text)
