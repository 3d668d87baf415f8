"""Commands that write a file which a person names, killed by SIGKILL at each of their steps."""

import errno
import fcntl
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli.command import CONFIG, Command
from support.ledgers.ledger import invoice, opened_till
from support.ports import free_port
from support.shop import BIN

from common.files import PART, replacing, write_stream, write_whole

PHRASE = ("--passphrase-file", "phrase")
OF_SQLITE = ("mcfd.sqlite3-wal", "mcfd.sqlite3-shm")
WRITING = (
    ("journal", "--output", "out/journal.csv"),
    ("upstream", "keygen", "out/upstream.key"),
    ("tls", "export-ca", "out/ca.pem"),
    ("backup", "--all", *PHRASE, "out/box.age"),
)


@pytest.fixture
async def mcfd(tmp_path: Path) -> Command:
    mcfd = Command(tmp_path, CONFIG)
    async with opened_till(mcfd.ledger) as (_, till):
        for number in range(3):
            await till.certify(invoice(f"F-{number}"), key=f"{number}".encode())
    mcfd.ok("tls", "init")
    (tmp_path / "phrase").write_text("six mots")
    (tmp_path / "out").mkdir()
    return mcfd


def words_in(folder: Path, words: tuple[str, ...]) -> list[str]:
    return [str(folder / word) if word.startswith(("out/", "phrase")) else word for word in words]


@pytest.mark.parametrize("words", WRITING, ids=lambda words: "-".join(words[:2]))
def test_a_killed_command_leaves_no_part_of_its_file(mcfd: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Under the final name is the whole file or none, and there is nothing beside it, so that the same command can be repeated."""
    out, command = tmp_path / "out", words_in(tmp_path, words)
    target = out / Path(command[-1]).name
    killed, sizes = 0, []
    for number in range(1, 400):
        first = ("support.cli.killed", "at", {"number": number, "within": str(tmp_path)})
        done = mcfd.run(*command, first=first)
        if done.returncode == 0:
            break
        assert done.returncode < 0, done.stderr
        killed += 1
        assert {path.name for path in out.iterdir()} <= {target.name}
        if target.exists():
            assert "exists already" in mcfd.refused(1, *command)
            sizes.append(target.stat().st_size)
            target.unlink()
    whole = target.stat().st_size
    assert killed > 1
    assert all(abs(size - whole) < whole // 20 for size in sizes), (sizes, whole)


@pytest.mark.parametrize("words", [("backup",), ("backup", "--all", *PHRASE)], ids=lambda words: " ".join(words[:2]))
def test_a_stopped_command_leaves_nothing(mcfd: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """`systemctl stop` of a backup ends it by the signal, and what it had begun is gone at once."""
    command = [*words_in(tmp_path, words), str(tmp_path / "out/copy")]
    mcfd.ok(*command)
    (tmp_path / "out/copy").unlink()
    before = {path.name for path in tmp_path.rglob("*")}
    stopped = 0
    for number in range(1, 400):
        first = ("support.cli.killed", "at", {"number": number, "within": str(tmp_path), "by": signal.SIGTERM})
        done = mcfd.run(*command, first=first)
        if done.returncode == 0:
            break
        stopped += 1
        assert done.returncode == -signal.SIGTERM, done.stderr
        if not (tmp_path / "out/copy").exists():  # else the end of a backup that is made was stopped
            assert {path.name for path in tmp_path.rglob("*")} - before <= {*OF_SQLITE}, number
        (tmp_path / "out/copy").unlink(missing_ok=True)
    assert stopped > 5


def test_the_page_of_the_first_start_ends_when_it_is_stopped(tmp_path: Path) -> None:
    """By the signal, within seconds: mcfd.service stops it before it takes its port."""
    words = ("setup", "--page", f"127.0.0.1:{free_port()}", "--config", str(tmp_path / "mcfd.toml"))
    page = subprocess.Popen([BIN / "mcfd", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert page.stdout
        assert "http://127.0.0.1" in page.stdout.readline()
        page.terminate()
        assert page.wait(20) == -signal.SIGTERM
    finally:
        page.kill()
        page.communicate()


def test_a_file_system_without_nameless_files_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As vfat: a file is whole or not at all; what a killed process left goes, not what a living one writes or a person put aside."""
    real, file, other = os.open, tmp_path / "copy.age", tmp_path / ".copy.age.in_use_1.part"

    def opened_file(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "as vfat")
        return real(path, flags, *mode)

    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "as vfat")

    monkeypatch.setattr(os, "open", opened_file)
    monkeypatch.setattr(os, "link", link)
    (tmp_path / ".copy.age.left_by1.part").write_text("half")
    other.write_text("half")
    mine = tmp_path / ".copy.age.20261129"
    mine.write_text("half")
    with other.open() as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        write_whole(file, b"first", 0o600, is_new=True)
        with pytest.raises(FileExistsError):
            write_whole(file, b"second", 0o600, is_new=True)
        with pytest.raises(ZeroDivisionError), replacing(file, 0o600) as written:
            written.write(b"third" * (1 // 0))
        assert file.read_bytes() == b"first"
        write_whole(file, b"fourth", 0o640)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        file.name: "fourth",
        other.name: "half",
        mine.name: "half",
    }


def test_without_proc_a_file_is_written_beside_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a chroot; no descriptor is left open."""
    real, before = Path.stat, len([*Path("/proc/self/fd").iterdir()])

    def stat(path: Path, **more: bool) -> os.stat_result:
        if path.is_relative_to("/proc"):
            raise FileNotFoundError(path)
        return real(path, **more)

    monkeypatch.setattr(Path, "stat", stat)
    write_whole(tmp_path / "file", b"content", 0o600, is_new=True)
    monkeypatch.undo()
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "content"}


def test_two_who_write_a_new_file_at_once(tmp_path: Path) -> None:
    """Who is slower is refused, and the file of the other stays whole, with nothing beside it."""
    file = tmp_path / "copy.age"

    def write_slowly() -> None:
        with replacing(file, 0o600, is_new=True) as slow:
            slow.write(b"slow")
            write_whole(file, b"fast", 0o600, is_new=True)

    with pytest.raises(FileExistsError):
        write_slowly()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"fast"]


def test_a_stick_that_gives_something_else_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that claims more room than it has takes everything, and it is in memory until that is dropped; then a part is gone."""
    file, real = tmp_path / "copy", os.posix_fadvise

    def drop(descriptor: int, *arguments: int) -> None:
        real(descriptor, *arguments)
        os.pwrite(descriptor, b"gone", 100)

    write_stream(file, io.BytesIO(bytes(200)), 0o600)
    monkeypatch.setattr(os, "posix_fadvise", drop)
    with pytest.raises(OSError, match="Input/output error"):
        write_stream(file, io.BytesIO(bytes(300)), 0o600)
    assert file.read_bytes() == bytes(200)


def test_a_link_among_what_was_left_is_not_opened(tmp_path: Path) -> None:
    """In the folder that HAProxy's user shares, a link may lead to the ledger: a process that opens and closes that loses SQLite's locks on it."""
    ledger, link = tmp_path / "mcfd.sqlite3", tmp_path / f".server.pem.a_link_1{PART}"
    ledger.write_bytes(b"")
    link.symlink_to(ledger)
    with ledger.open("rb+") as locked:
        fcntl.lockf(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_whole(tmp_path / "server.pem", b"x", 0o640)
        other = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run([sys.executable, "-c", other, ledger], capture_output=True, check=False)
    assert (done.returncode, link.is_symlink()) == (1, True)
