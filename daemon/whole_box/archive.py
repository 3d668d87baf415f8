"""Packs a box's files beside the ledger into one archive, and reads it. An archive is data: it never decides where
files go.

The numbers remembered beside the ledger are left out: they are older than the box that failed, and could make a Z
number be used twice (decision 30). A restore on a new disk prompts for the last Z on paper."""

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from common.files import secret_path, write_whole
from common.language import Text
from common.settings import named_paths
from daemon.owner import as_owner
from daemon.settings import Settings, source
from daemon.whole_box.sealed import NotOpened
from daemon.whole_box.signature import KEY_FILE, ArchiveEntry, BoxKey, Signature, key_file

CONFIG: Final = "mcfd.toml"
LEDGER: Final = "ledger.sqlite3"
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "signature.json"
FILES: Final = "files/"
AUTHORITY: Final = "authority/"
BOX: Final = "box/"
JOINED: Final = f"{BOX}headquarters."
FORMAT: Final = 1
AUTHORITY_FILES: Final = {"ca.pem": 0o644, "ca.key": 0o600, "server.pem": 0o600}
NOT_COPIED: Final = ("file", "storage.path", "server.tls_folder")
"""Paths of the configuration that are no files of their own, or are the ledger."""
OPEN_FILES: Final = {"company.logo": 0o644}
"""Files that are not secret and are read by a daemon that is not root."""
LARGEST_FILE: Final = 1024 * 1024
LARGEST_TOGETHER: Final = 16 * LARGEST_FILE
"""Limit of all files except the ledger; they are in memory."""
MAX_FILES: Final = 1000
LONGEST_HEADERS: Final = 64 * 1024
"""Limit of the headers between two files of the archive."""
PIECE: Final = 256 * 1024
_FILE_NAME: Final = re.compile(rf"({FILES}|{AUTHORITY}|{BOX})[A-Za-z0-9_][A-Za-z0-9_.\[\]-]*")


class Manifest(msgspec.Struct, frozen=True):
    format: int
    created_at: str = msgspec.field(name="made_at")
    """RFC 3339"""
    version: str
    config: str
    """where the configuration was; for people"""


class BoxFile(NamedTuple):
    """A file of the box."""

    name: str
    """in the archive"""
    path: Path
    """where it belongs"""
    mode: int


def box_files(settings: Settings) -> Iterator[BoxFile]:
    """All files of the box: configured, of the authority, of a joined headquarters, the signing key; may not exist."""
    for key, path in named_paths(settings):
        if key not in NOT_COPIED and path.parent != settings.joined_home:
            yield BoxFile(FILES + key, path, OPEN_FILES.get(key, 0o600))
    for name, mode in AUTHORITY_FILES.items():
        yield BoxFile(AUTHORITY + name, settings.tls_home / name, mode)
    yield BoxFile(BOX + KEY_FILE, key_file(settings.storage.path), 0o600)
    for name in reversed(source.FILES):
        yield BoxFile(JOINED + name, settings.joined_home / name, 0o600)


def pack(
    settings: Settings, ledger: Path, target: BinaryIO, key: BoxKey, *, created_at: str, version: str
) -> list[Path]:
    """`ledger` is a verified copy; `key` signs everything. Returns the paths left out: configured files that are
    missing, unreadable or too large, and an authority's key that is elsewhere."""
    left_out: list[Path] = []
    file = settings.file or Path(CONFIG)
    manifest = Manifest(FORMAT, created_at, version, str(file))
    entries: list[ArchiveEntry] = []
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:

        def add(name: str, content: bytes) -> None:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
            entries.append(_entry(name, content))

        add(MANIFEST, msgspec.json.encode(manifest))
        add(CONFIG, file.read_bytes())
        for each in box_files(settings):
            try:
                add(each.name, _read(secret_path(each.path)))
            except OSError:
                is_of_box = settings.server.tls or not each.name.startswith(AUTHORITY)
                if is_of_box and not each.name.startswith(JOINED):
                    left_out.append(each.path)
        with as_owner(ledger.parent):
            copy = ledger.open("rb")
        with copy:
            info = tarfile.TarInfo(LEDGER)
            info.size = copy.seek(0, io.SEEK_END)
            copy.seek(0)
            hashed = _Hashed(copy.read)
            archive.addfile(info, hashed)
            entries.append(ArchiveEntry(LEDGER, info.size, hashed.sha256.hexdigest()))
        add(SIGNATURE, msgspec.json.encode(key.sign(entries)))
    return left_out


def _read(path: Path) -> bytes:
    with as_owner(path.parent), path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(f"{path} is too large")
    return content


def _entry(name: str, content: bytes) -> ArchiveEntry:
    return ArchiveEntry(name, len(content), hashlib.sha256(content).hexdigest())


class _Hashed(io.RawIOBase):
    """Reads and hashes."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        content = self._read(size)
        self.sha256.update(content)
        return content


class ArchiveReader:
    """Reads an archive member by member, in the order of `pack`: `files` first, then `copy_ledger`. Raises NotOpened
    for anything else: links, devices, sparse files, other or repeated names, or sizes over the limits."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = _Allowance(source)
        self.files: dict[str, bytes] = {}
        self.entries: list[ArchiveEntry] = []
        self.signature: Signature | None = None
        with _as_archive():
            self._archive = tarfile.open(fileobj=self._source, mode="r|")  # noqa: SIM115  as long as its source
        self._ledger = self._read_files()
        self.manifest = _manifest(self.files)

    def copy_ledger(self, target: BinaryIO) -> None:
        """Copies the ledger to `target`; afterwards `signature` and `entries` are complete."""
        with _as_archive():
            hashed, size = _Hashed(self._content(self._ledger).read), 0
            while piece := hashed.read(PIECE):
                size += target.write(piece)
            self.entries.append(ArchiveEntry(LEDGER, size, hashed.sha256.hexdigest()))
            while (member := self._next()) is not None:
                if member.name != SIGNATURE:
                    raise _wrong(member.name)
                self.signature = msgspec.json.decode(self._small(member), type=Signature)

    def _read_files(self) -> tarfile.TarInfo:
        """Reads up to the ledger and returns its member."""
        together = 0
        with _as_archive():
            while (member := self._next()) is not None:
                if member.name == LEDGER:
                    return member
                together += member.size
                is_expected = member.name in {MANIFEST, CONFIG} or _FILE_NAME.fullmatch(member.name)
                is_too_much = together > LARGEST_TOGETHER or len(self.files) >= MAX_FILES
                if not is_expected or member.name in self.files or is_too_much:
                    raise _wrong(member.name)
                self.files[member.name] = content = self._small(member)
                self.entries.append(_entry(member.name, content))
        raise _wrong(LEDGER)

    def _next(self) -> tarfile.TarInfo | None:
        self._source.left = LONGEST_HEADERS
        member = self._archive.next()
        if member is not None and (not member.isreg() or member.issparse() or member.size < 0):
            raise _wrong(member.name)
        return member

    def _small(self, member: tarfile.TarInfo) -> bytes:
        if member.size > LARGEST_FILE or self.signature is not None:
            raise _wrong(member.name)
        return self._content(member).read()

    def _content(self, member: tarfile.TarInfo) -> BinaryIO:
        self._source.left = LONGEST_HEADERS + member.size
        content = self._archive.extractfile(member)
        if content is None:
            raise _wrong(member.name)
        return content  # type: ignore[return-value]  # tarfile's own reader


class _Allowance(io.RawIOBase):
    """Allows `left` bytes only: a header states its own length, and tarfile would read it all into memory."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__()
        self._source = source
        self.left = LONGEST_HEADERS

    def read(self, size: int = -1, /) -> bytes:
        content = self._source.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise _wrong(Text("a header is too long"))
        return content


@contextmanager
def _as_archive() -> Iterator[None]:
    """Translates errors of tarfile and msgspec into NotOpened."""
    try:
        yield
    except NotOpened:
        raise
    except (
        tarfile.TarError,
        msgspec.MsgspecError,
        ValueError,
        LookupError,
        OverflowError,
        EOFError,
        RecursionError,
    ) as error:
        raise _wrong(error) from None


def _manifest(files: dict[str, bytes]) -> Manifest:
    for name in (MANIFEST, CONFIG):
        if name not in files:
            raise _wrong(name)
    with _as_archive():
        manifest = msgspec.json.decode(files[MANIFEST], type=Manifest)
    if manifest.format != FORMAT:
        raise NotOpened(Text("the backup was made by a newer mcfd ({version})", version=manifest.version))
    return manifest


def _wrong(why: object) -> NotOpened:
    return NotOpened(Text("this is no backup of a whole box ({why})", why=why))


class Places(NamedTuple):
    """`folders`: those of configuration, ledger and authority, and those that the operator adds."""

    config: Path
    folders: tuple[Path, ...]

    def has(self, path: Path) -> bool:
        return any(folder in path.parents for folder in self.folders)


class OutOfPlace(ValueError):
    """The archive's configuration has its ledger or authority in no folder of this box."""

    def __init__(self, key: str, path: Path) -> None:
        super().__init__(f"{key}: {path}")
        self.key = key
        self.path = path


class RestorePlan(NamedTuple):
    """`outside`: configured files in other folders, by key; they are not written."""

    ledger: Path
    files: tuple[tuple[BoxFile, bytes], ...]
    outside: tuple[tuple[str, Path], ...]


def places_of(config: Path, present: Settings | None, further: Iterable[Path]) -> Places:
    """`present` are the settings in force; without them the package's defaults count."""
    box = present or Settings()
    folders = (config.parent, box.storage.path.parent, box.tls_home, *further)
    return Places(config, tuple(map(_plain, folders)))


def plan(files: Mapping[str, bytes], settings: Settings, places: Places) -> RestorePlan:
    """The archive's files with their places by its own `settings`. Raises OutOfPlace."""
    ledger, home = _plain(settings.storage.path), _plain(settings.tls_home)
    if ledger.parent not in places.folders:
        raise OutOfPlace("storage.path", ledger)
    if home not in places.folders and not places.has(home):
        raise OutOfPlace("server.tls_folder", home)
    taken = {places.config}
    found: list[tuple[BoxFile, bytes]] = []

    def is_place(path: Path) -> bool:
        return places.has(path) and places.config not in path.parents and not _is_of_ledger(path, ledger)

    for each in box_files(settings):
        path = _plain(each.path)
        if each.name in files and is_place(path) and path not in taken:
            taken.add(path)
            found.append((each._replace(path=path), files[each.name]))
    named = ((key, _plain(path)) for key, path in named_paths(settings) if key not in NOT_COPIED)
    return RestorePlan(ledger, tuple(found), tuple((key, path) for key, path in named if not is_place(path)))


def _is_of_ledger(path: Path, ledger: Path) -> bool:
    """Whether it is the ledger or a file beside it with its name as prefix (log, lock, remembered numbers and revoked
    keys, replaced ledgers), or below one."""
    real = Path(os.path.realpath(ledger))
    within = (path, *path.parents)
    return any(
        each.parent == file.parent and each.name.startswith(file.name) for file in (ledger, real) for each in within
    )


def put_back(planned: RestorePlan, content: bytes, config: Path, *, stamp: str) -> list[Path]:
    """Writes all but the ledger, the configuration last: after a power cut nothing starts, and the same command
    completes it. An existing configuration is renamed. Returns the paths written."""
    for each, file in planned.files:
        with as_owner(each.path.parent):
            each.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            write_whole(each.path, file, each.mode)
    with as_owner(config.parent):
        config.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if config.exists():
            config.replace(config.with_name(f"{config.name}.replaced-{stamp}"))
        # The daemon, which is not root, reads it as the group of its folder (debian/mcfd.tmpfiles).
        group = config.parent.stat().st_gid if os.geteuid() == 0 else -1
        write_whole(config, content, 0o640, gid=group)
    return [*(each.path for each, _ in planned.files), config]


def _plain(path: Path) -> Path:
    """Absolute, without a `..` that could lead out of a folder."""
    return Path(os.path.normpath(path.absolute()))
