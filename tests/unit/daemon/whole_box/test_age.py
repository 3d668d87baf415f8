"""The file format of age: what mcfd closes `age` opens, and the other way round; nothing that was changed passes."""

import io
import subprocess
from pathlib import Path

import pytest
from support.tools import need

from daemon.whole_box.age import NotOpened, Opened, Sealing, generate, read_identity, read_recipient, recipient_of

WORDS = "six mots que personne ne devine"
LENGTHS = (0, 1, 65_535, 65_536, 65_537, 200_000)


def sealed(content: bytes, **how: object) -> bytes:
    target = io.BytesIO()
    with Sealing(target, **how) as file:  # type: ignore[arg-type]
        for at in range(0, len(content), 1000):
            file.write(content[at : at + 1000])
    return target.getvalue()


@pytest.fixture(scope="module")
def pair() -> tuple[str, str]:
    return generate()


@pytest.mark.parametrize("length", LENGTHS)
def test_what_is_closed_opens_again(length: int, pair: tuple[str, str]) -> None:
    """Also around the border of a piece, and read in odd portions."""
    content = bytes(at % 251 for at in range(length))
    opened = Opened(
        io.BytesIO(sealed(content, recipients=[read_recipient(pair[1])])), identities=[read_identity(pair[0])]
    )
    assert opened.read(7) + opened.read() == content


def test_a_passphrase_opens_and_another_does_not() -> None:
    """The wrong one is told as such. What a guess costs stands in the file: 2^16 rounds, 64 MB."""
    closed = sealed(b"ledger", passphrase=WORDS)
    assert closed.splitlines()[1].split()[-1] == b"16"
    assert Opened(io.BytesIO(closed), passphrase=WORDS).read() == b"ledger"
    with pytest.raises(NotOpened, match="passphrase is wrong"):
        Opened(io.BytesIO(closed), passphrase=WORDS + "x")


def test_every_changed_byte_and_every_missing_end_is_noticed(pair: tuple[str, str]) -> None:
    """In header, code, nonce and payload; a file that ends between two pieces too."""
    content, identity = b"x" * 70_000, read_identity(pair[0])
    closed = sealed(content, recipients=[read_recipient(pair[1])])
    places = [*range(0, 250, 7), len(closed) - 70_000, len(closed) - 1]
    damaged = [closed[:at] + bytes([closed[at] ^ 1]) + closed[at + 1 :] for at in places]
    head = len(sealed(b"", recipients=[read_recipient(pair[1])])) - 16
    damaged += [closed[: head + 65_536 + 16], closed[:-1], closed[:100], b"", b"PK"]
    for broken in damaged:
        with pytest.raises(NotOpened):
            Opened(io.BytesIO(broken), identities=[identity]).read()


def test_age_itself_opens_it_and_closes_for_us(tmp_path: Path, pair: tuple[str, str]) -> None:
    """With Debian's `age`: a backup is readable without mcfd."""
    need("age")
    (tmp_path / "id").write_text(f"# made by a test\n{pair[0]}\n")
    content = bytes(range(256)) * 600
    ours = sealed(content, recipients=[read_recipient(pair[1])])
    command = ["age", "-d", "-i", str(tmp_path / "id")]
    assert subprocess.run(command, input=ours, capture_output=True, check=True, timeout=60).stdout == content
    theirs = subprocess.run(["age", "-r", pair[1]], input=content, capture_output=True, check=True, timeout=60).stdout
    identity = read_identity((tmp_path / "id").read_text())
    assert recipient_of(identity) == pair[1]
    assert Opened(io.BytesIO(theirs), identities=[identity]).read() == content


def test_a_mistyped_key_is_none(pair: tuple[str, str]) -> None:
    """The checksum of a public key tells it from another one."""
    wrong = pair[1][:-1] + ("q" if pair[1][-1] != "q" else "p")
    for text in (wrong, "age1", pair[0], "ssh-ed25519 AAAA"):
        with pytest.raises(ValueError):  # noqa: PT011  whatever is wrong with it
            read_recipient(text)
