"""`restore --all` of an archive that somebody else has made: data, written into this box's folders alone, and nothing of it is left by a kill."""

import contextlib
import os
import resource
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.archives import box as box_of
from support.archives import members, packed, seal, tampered
from support.cli.command import CONFIG, Command, audited
from support.ledgers.ledger import opened_till
from support.tools import folder_for_all

from daemon.whole_box.archive import CONFIG as CONFIG_NAME
from daemon.whole_box.archive import LEDGER, MANIFEST, SIGNATURE
from daemon.whole_box.sealed import new_identity

MEGABYTE = 1024 * 1024
UNPRIVILEGED_UID = 65_534


class Bench:
    """A key, a ledger that somebody has, and a box without anything on which it is put back."""

    def __init__(self, folder: Path, identity: str, recipient: str, ledger: bytes) -> None:
        self.folder, self.recipient, self.ledger = folder, recipient, ledger
        self.identity = folder / "identity"
        self.identity.write_text(identity)
        self.secret = identity
        (folder / "new").mkdir()
        self.new = Command(folder / "new")
        self.new.config.unlink()
        self.outside = folder / "outside"
        self.outside.mkdir()

    def archive(self, config: str, files: Mapping[str, bytes] | None = None) -> Path:
        return seal(self.folder / "forged.age", self.recipient, box_of(config, self.ledger, files))

    def words(self, file: Path, *more: str) -> tuple[str, ...]:
        return ("restore", "--all", str(file), "--identity", str(self.identity), *more)

    def put_back(self, file: Path, *more: str) -> subprocess.CompletedProcess[str]:
        return self.new.run(*self.words(file, "--foreign", "--yes", *more))

    def nothing_is_written(self) -> bool:
        return not [*self.new.folder.rglob("*"), *self.outside.rglob("*")]


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    ledger = tmp_path / "some.sqlite3"
    async with opened_till(ledger) as (_, till):
        await till.sell()
        await till.close()
    return Bench(tmp_path, *new_identity(), ledger.read_bytes())


def test_nothing_is_written_outside_of_the_folders_of_this_box(bench: Bench) -> None:
    """Other places that its configuration names are listed and not written; the rest is put back, a secret with its mode."""
    evil = bench.outside / "cron"
    config = f"""{CONFIG}
[company]
logo = "{evil}"

[server]
tls_cert = "{bench.new.folder}/../outside/cert.pem"
tls_key = "mcfd.sqlite3-wal"

[backup]
passphrase_file = "credentials/backup.passphrase"
"""
    files = {
        "files/company.logo": b"* * * * * root evil\n",
        "files/server.tls_cert": b"evil",
        "files/server.tls_key": b"evil",
        "files/backup.passphrase_file": b"six mots\n",
    }
    content = box_of(config, bench.ledger, files, at=str(bench.outside / "mcfd.toml"))
    done = bench.put_back(seal(bench.folder / "forged.age", bench.recipient, content))
    assert done.returncode == 0, done.stderr
    for key, path in (("company.logo", evil), ("server.tls_cert", bench.outside / "cert.pem")):
        assert f"{key} = {path}" in done.stderr
    assert (list(bench.outside.iterdir()), bench.new.config.exists()) == ([], True)
    secret = bench.new.folder / "credentials/backup.passphrase"
    assert (secret.read_bytes(), stat.S_IMODE(secret.stat().st_mode)) == (b"six mots\n", 0o600)
    assert b"evil" not in b"".join(path.read_bytes() for path in bench.new.folder.rglob("*") if path.is_file())
    assert len(audited(bench.new, "ledger.restored")) == 1


@pytest.mark.parametrize(
    "name",
    ["mcfd.sqlite3.high-water", "mcfd.sqlite3.lock", "x/../mcfd.sqlite3.replaced-x", "mcfd.sqlite3/x", "mcfd.toml/x"],
)
def test_what_the_ledger_keeps_beside_it_is_no_place_for_a_file(bench: Bench, name: str) -> None:
    """The Z numbers and revoked keys that were remembered here are not what an archive says; nor is its configuration a folder."""
    first = bench.put_back(bench.archive(CONFIG))
    assert first.returncode == 0, first.stderr
    config = f'{CONFIG}\n[company]\nlogo = "{name}"\n'
    done = bench.put_back(bench.archive(config, {"files/company.logo": b"evil"}))
    assert done.returncode == 0, done.stderr
    assert f"company.logo = {bench.new.folder / name.removeprefix('x/../')}" in done.stderr
    assert bench.new.config.is_file()
    assert b"evil" not in b"".join(path.read_bytes() for path in bench.new.folder.glob("mcfd.sqlite3*"))


@pytest.mark.parametrize(
    ("key", "config"),
    [
        *(
            ("storage.path", CONFIG.replace('"mcfd.sqlite3"', f'"{path}"'))
            for path in ("{outside}/x", "../outside/x", "deeper/x")
        ),
        *(
            ("server.tls_folder", f'{CONFIG}\n[server]\ntls = "internal"\ntls_folder = "{path}"\n')
            for path in ("{outside}/x", "../outside/x")
        ),
    ],
)
def test_a_ledger_or_an_authority_in_another_folder_is_refused(bench: Bench, key: str, config: str) -> None:
    """Before anything is written; the operator may say that it is to be there."""
    file = bench.archive(config.replace("{outside}", str(bench.outside)), {"authority/ca.key": b"key"})
    done = bench.put_back(file)
    assert (done.returncode, key in done.stderr, "--place" in done.stderr) == (1, True, True), done.stderr
    assert bench.nothing_is_written()
    (bench.new.folder / "deeper").mkdir()
    places = ("--place", str(bench.outside), "--place", str(bench.new.folder / "deeper"))
    assert bench.put_back(file, *places).returncode == 0


def link(kind: bytes, name: str = "files/company.logo", target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def hole(size: int) -> bytes:
    """The header of GNU's sparse files: one byte of 745 MB."""
    info = tarfile.TarInfo("files/company.logo")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (size - 512, 512)
    header[483:495] = b"%011o\0" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"x" * 512


def raw(content: bytes) -> object:
    def change(archive: tarfile.TarFile) -> None:
        assert archive.fileobj
        archive.fileobj.write(content)
        archive.offset += len(content)

    return change


def sized(name: str, size: int) -> object:
    def change(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = size
        archive.addfile(info, _Zeros())  # type: ignore[arg-type]

    return change


class _Zeros:
    def read(self, size: int) -> bytes:
        return bytes(size)


def long_header(archive: tarfile.TarFile) -> None:
    info = tarfile.TarInfo("files/company.logo")
    info.pax_headers = {"comment": "x" * 50 * MEGABYTE}
    archive.addfile(info)


def sparse_by_pax(archive: tarfile.TarFile) -> None:
    info = tarfile.TarInfo("files/company.logo")
    info.pax_headers = {"GNU.sparse.size": str(745 * MEGABYTE), "GNU.sparse.map": "0,1"}
    info.size = 1
    archive.addfile(info, _Zeros())  # type: ignore[arg-type]


def twice(archive: tarfile.TarFile) -> None:
    for _ in range(2):
        archive.addfile(tarfile.TarInfo("files/company.logo"))


def many(archive: tarfile.TarFile) -> None:
    for number in range(5000):
        archive.addfile(tarfile.TarInfo(f"files/webhook[{number}].secret_file"))


HOSTILE = {
    "a symbolic link": lambda archive: archive.addfile(link(tarfile.SYMTYPE)),
    "a link": lambda archive: archive.addfile(link(tarfile.LNKTYPE)),
    "a symbolic link in the ledger's place": lambda archive: archive.addfile(link(tarfile.SYMTYPE, LEDGER)),
    "a device": lambda archive: archive.addfile(link(tarfile.CHRTYPE)),
    "a pipe": lambda archive: archive.addfile(link(tarfile.FIFOTYPE)),
    "a folder": lambda archive: archive.addfile(link(tarfile.DIRTYPE, "files")),
    "an absolute name": sized("/etc/cron.d/evil", 5),
    "a name that leads out": sized("files/../../evil", 5),
    "a name with a line": sized("files/a\nb", 5),
    "another name": sized("evil", 5),
    "a name twice": twice,
    "too many": many,
    "a hole": raw(hole(745 * MEGABYTE)),
    "a hole by pax": sparse_by_pax,
    "a large file": sized("files/company.logo", 2 * MEGABYTE),
    "a header of 50 MB": long_header,
    "no tar": raw(b"\xff" * 512),
}


@pytest.mark.parametrize("name", [*HOSTILE, "a tower of brackets", "a place with a NUL"])
def test_an_archive_with_something_else_in_it_is_refused(bench: Bench, name: str) -> None:
    """In words, before anything is written, and within a few megabytes; also where a reader would skip it."""
    code, expected = 1, "no backup of a whole box"
    if name == "a tower of brackets":
        content = packed({MANIFEST: b'{"more":' + b"[" * 500_000, CONFIG_NAME: CONFIG.encode(), LEDGER: bench.ledger})
    elif name == "a place with a NUL":
        code, expected = 2, "company.logo"
        config = f'{CONFIG}\n[company]\nlogo = "a\\u0000b"\n'
        content = box_of(config, bench.ledger, {"files/company.logo": b"evil"})
    else:
        content = tampered(CONFIG, bench.ledger, HOSTILE[name])  # type: ignore[arg-type]
    file = seal(bench.folder / "forged.age", bench.recipient, content)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = bench.put_back(file)
    assert (done.returncode, expected in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr
    assert bench.nothing_is_written()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - before < 200_000  # KiB


# -- who signed it --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def box(bench: Bench) -> Command:
    """A box in use, and the backup of it that it has signed: `own.age`."""
    (bench.folder / "box").mkdir()
    box = Command(bench.folder / "box", CONFIG)
    async with opened_till(box.ledger) as (_, till):
        await till.sell()
    box.ok("backup", "--all", str(bench.folder / "own.age"), "--recipient", bench.recipient)
    return box


def test_its_own_backup_is_put_back_another_wants_a_word(bench: Bench, box: Command) -> None:
    """One unsigned or signed by another box is refused without `--foreign` or `--signed-by`, also where there is no key."""
    own, unsigned = bench.folder / "own.age", bench.archive(CONFIG)
    assert "this box" in box.json(*bench.words(own, "--yes"))["signature"]
    done = box.run(*bench.words(unsigned, "--yes"))
    assert (done.returncode, "not signed" in done.stderr, "--foreign" in done.stderr) == (1, True, True), done.stderr
    (bench.folder / "third").mkdir()
    third = Command(bench.folder / "third", CONFIG)
    third.ok("keys", "create", "--nim", "EL02000015-1")
    other = bench.folder / "third.age"
    assert third.run(*bench.words(own, "--yes")).returncode == 1
    name = third.json("backup", "--all", str(other), "--recipient", bench.recipient)["signed_by"]
    done = box.run(*bench.words(other, "--yes"))
    assert (done.returncode, name in done.stderr) == (1, True), done.stderr
    assert box.run(*bench.words(other, "--yes", "--signed-by", "1234-5678")).returncode == 1
    assert box.run(*bench.words(own, "--yes", "--signed-by", name)).returncode == 1
    assert box.json("journal", "--from", "2020-01-01")
    named = ("--yes", "--signed-by", name.upper().replace("-", ""))
    done = box.run(*bench.words(other, *named, "--keep-newer"))
    assert (done.returncode, "it is another ledger" in done.stderr) == (3, True), done.stderr
    assert box.run(*bench.words(other, *named)).returncode == 0
    assert box.run(*bench.words(unsigned, "--yes", "--foreign")).returncode == 0


def test_on_a_new_disk_the_fingerprint_is_shown_to_compare(bench: Bench, box: Command) -> None:
    """There is no key yet; from then on the box signs as the dead one did, and takes its older backups."""
    done = bench.new.run(*bench.words(bench.folder / "own.age", "--yes"))
    name = box.json("backup", "--all", str(bench.folder / "later.age"), "--recipient", bench.recipient)["signed_by"]
    assert (done.returncode, name in done.stderr) == (0, True), done.stderr
    assert "this box" in bench.new.json(*bench.words(bench.folder / "later.age", "--yes"))["signature"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_key_typed_into_a_file_on_windows_opens(bench: Bench, box: Command, encoding: str) -> None:
    """As its Notepad saves it, with a byte order mark. What holds no key says so, in one line."""
    bench.identity.write_bytes(f"\ufeff{bench.secret}\r\n".encode(encoding))
    done = bench.new.run(*bench.words(bench.folder / "own.age", "--yes"))
    assert done.returncode == 0, done.stderr
    bench.identity.write_bytes(b"\xff\xfe\xfd")
    done = bench.new.run(*bench.words(bench.folder / "own.age", "--yes"))
    assert (done.returncode, done.stderr.count("\n"), "or a mistyped one" in done.stderr) == (1, 1, True), done.stderr


def test_the_other_kind_of_backup_is_named(bench: Bench, box: Command) -> None:
    """A whole box given as a copy of the ledger, and the other way round: neither is called damaged, and the option is."""
    own = bench.folder / "own.age"
    done = box.run("restore", str(own), "--yes")
    assert done.returncode == 1
    assert done.stderr == f"mcfd: {own} is the backup of a whole box: mcfd restore --all {own}\n"
    done = box.run(*bench.words(bench.folder / "some.sqlite3"))
    assert (done.returncode, "without --all" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("name", ["mcfd.toml", LEDGER])
def test_a_signature_is_of_every_byte(bench: Bench, box: Command, name: str) -> None:
    """A holder of the public key can seal, but not change what was signed; not even `--foreign` takes that."""
    found = members(bench.folder / "own.age", bench.secret)
    assert SIGNATURE in found
    changed = packed({**found, name: found[name] + b"\n"})
    done = box.run(*bench.words(seal(bench.folder / "x.age", bench.recipient, changed), "--yes", "--foreign"))
    assert (done.returncode, "signature" in done.stderr) == (1, True), done.stderr


# -- asked for, and killed ------------------------------------------------------------------------------------------------


def test_the_targets_are_named_and_asked_for(bench: Bench) -> None:
    """Also on a new disk: without a terminal `--yes` is needed, at one "n" ends it; each time every file is named and none is written."""
    words = bench.words(bench.archive(CONFIG), "--foreign")
    for done, code in ((bench.new.run(*words), 2), (bench.new.at_terminal(b"n\n", *words), 130)):
        assert done.returncode == code, done.stderr
        assert all(str(path) in done.stderr for path in (bench.new.ledger, bench.new.config)), done.stderr
        assert bench.nothing_is_written()


def readable_by_others(folder: Path, put_back: set[Path]) -> list[Path]:
    found = []
    for path in folder.rglob("*"):
        ways = {path, *(each for each in path.parents if each != folder and folder in each.parents)}
        is_closed = any(stat.S_IMODE(way.lstat().st_mode) & 0o077 == 0 for way in ways)
        is_config = path.name.startswith(".mcfd.toml.")  # no secret, and as readable as in its place
        if path.is_file() and not is_closed and path not in put_back and not is_config:
            found.append(path)
    return found


@contextlib.contextmanager
def nothing_new_in(*folders: str) -> Iterator[None]:
    before = {path for folder in folders for path in Path(folder).glob("mcfd-*")}
    yield
    after = {path for folder in folders for path in Path(folder).glob("mcfd-*")}
    assert [path for path in after - before if "box" in path.name] == []


def test_a_restore_that_is_killed_leaves_nothing_to_read(bench: Bench) -> None:
    """What is decrypted is its owner's alone at every step; the same command again finishes it and leaves nothing beside."""
    files = {"files/backup.passphrase_file": b"six mots\n"}
    config = f'{CONFIG}\n[backup]\npassphrase_file = "credentials/backup.passphrase"\n'
    words = bench.words(bench.archive(config, files), "--foreign", "--yes")
    put_back = {bench.new.config, bench.new.folder / "mcfd.sqlite3.lock"}
    killed = 0
    with nothing_new_in("/tmp", "/var/tmp"):  # noqa: S108  where they were
        for number in range(1, 400):
            first = ("support.cli.killed", "at", {"number": number, "within": str(bench.new.folder)})
            done = bench.new.run(*words, first=first)
            if done.returncode == 0:
                break
            killed += 1
            assert done.returncode < 0, done.stderr
            assert readable_by_others(bench.new.folder, put_back) == []
            bench.new.config.unlink(missing_ok=True)
    assert killed > 5
    assert bench.new.run(*words).returncode == 0
    names = {path.name for path in bench.new.folder.rglob("*")}
    assert not [name for name in names if name.startswith(".") or ".part" in name]
    assert bench.new.ok("verify")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_follows_no_link_that_the_daemons_user_has_planted(bench: Bench) -> None:
    """In the ledger's folder, which is theirs: the folder of the authority, a secret's, and the archive itself lead elsewhere."""
    with folder_for_all() as folder:
        (folder / "var/backups").mkdir(parents=True)
        (folder / "etc").mkdir()
        (folder / "root").mkdir(mode=0o700)
        (folder / "root/shadow").write_text("secret")
        (folder / "root/shadow").chmod(0o600)
        for name in ("tls", "keys"):
            (folder / "var" / name).symlink_to(folder / "root")
        (folder / "var/backups/copy.sqlite3").symlink_to(folder / "root/shadow")
        for path in (folder / "var", *(folder / "var").rglob("*")):
            os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID, follow_symlinks=False)
        config = CONFIG.replace('"mcfd.sqlite3"', f'"{folder}/var/mcfd.sqlite3"')
        (folder / "etc/mcfd.toml").write_text(f'{config}\n[company]\nlogo = "{folder}/var/keys/evil"\n')
        file = bench.archive(
            (folder / "etc/mcfd.toml").read_text(), {"authority/ca.key": b"k", "files/company.logo": b"e"}
        )
        where = ("--config", str(folder / "etc/mcfd.toml"))
        done = bench.new.run(*bench.words(file, "--foreign", "--yes", *where))
        assert done.returncode == 1, done.stderr
        done = bench.new.run("restore", str(folder / "var/backups/copy.sqlite3"), "--yes", *where)
        assert done.returncode != 0
        assert [path.name for path in (folder / "root").iterdir()] == ["shadow"]
        files = [path for path in (folder / "var").rglob("*") if path.is_file() and not path.is_symlink()]
        assert not [path for path in files if path.read_bytes().startswith(b"secret")]
