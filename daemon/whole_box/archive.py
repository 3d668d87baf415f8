"""What belongs to a box beside its ledger, packed into one archive and put back on another one.

The numbers that are remembered beside the ledger are not in it: they are older than the box that died, and would let a Z number be
given twice (decision 30). A restore on a new disk asks for the last Z on paper."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from daemon.files import write_whole
from daemon.language import Text
from daemon.owner import as_owner
from daemon.settings import Settings, load, secret_path
from daemon.settings.section import Section
from daemon.whole_box.age import NotOpened, Opened, Sealing

CONFIG: Final = "mcfd.toml"
LEDGER: Final = "ledger.sqlite3"
MANIFEST: Final = "manifest.json"
FILES: Final = "files/"
AUTHORITY: Final = "authority/"
FORMAT: Final = 1
AUTHORITY_FILES: Final = {"ca.pem": 0o644, "ca.key": 0o600, "server.pem": 0o600}
NOT_COPIED: Final = ("file", "storage.path", "server.tls_folder")
"""Paths of the configuration that are not files of their own, or the ledger."""
OPEN_FILES: Final = {"company.logo": 0o644}
"""What is no secret, and is read by a daemon that is not root."""
LARGEST_FILE: Final = 1024 * 1024


class Manifest(msgspec.Struct, frozen=True):
    format: int
    made_at: str
    """RFC 3339"""
    version: str
    config: str
    """where the configuration was"""


class Belonging(NamedTuple):
    """A file of the box."""

    name: str
    """in the archive"""
    path: Path
    """where it belongs"""
    mode: int


def belongings(settings: Settings) -> Iterator[Belonging]:
    """What the configuration names and what its authority holds; whether or not it is there."""
    for key, path in _paths(settings, ""):
        if key not in NOT_COPIED:
            yield Belonging(FILES + key, path, OPEN_FILES.get(key, 0o600))
    for name, mode in AUTHORITY_FILES.items():
        yield Belonging(AUTHORITY + name, settings.tls_home / name, mode)


def _paths(section: Section, within: str) -> Iterator[tuple[str, Path]]:
    for name in section.__struct_fields__:
        value, key = getattr(section, name), f"{within}{name}"
        if isinstance(value, Path):
            yield key, value
        elif isinstance(value, Section):
            yield from _paths(value, f"{key}.")
        elif isinstance(value, tuple):
            for index, each in enumerate(value):
                if isinstance(each, Section):
                    yield from _paths(each, f"{key}[{index}].")


def pack(settings: Settings, ledger: Path, target: Sealing, *, made_at: str, version: str) -> list[Path]:
    """`ledger` is a verified copy. What the configuration names and is not there, or may not be read by this user, is left out, and is the
    answer; the key of an authority that is kept elsewhere, too."""
    left_out: list[Path] = []
    file = settings.file or Path(CONFIG)
    manifest = Manifest(FORMAT, made_at, version, str(file))
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, MANIFEST, msgspec.json.encode(manifest))
        _add(archive, CONFIG, file.read_bytes())
        for each in belongings(settings):
            try:
                _add(archive, each.name, _read(secret_path(each.path)))
            except OSError:
                if settings.server.tls or not each.name.startswith(AUTHORITY):
                    left_out.append(each.path)
        with ledger.open("rb") as copy:
            info = tarfile.TarInfo(LEDGER)
            info.size = ledger.stat().st_size
            archive.addfile(info, copy)
    return left_out


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def unpack(source: Opened, folder: Path) -> Manifest:
    """Into `folder`, which is the caller's alone; nothing of the box is touched. NotOpened when it is no backup of a whole box."""
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or not _is_known(member):
                    continue
                path = folder / member.name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                with path.open("xb") as file:
                    while piece := content.read(LARGEST_FILE):
                        file.write(piece)
    except tarfile.TarError as error:
        raise NotOpened(Text("this is no backup of a whole box ({why})", why=error)) from None
    missing = [name for name in (MANIFEST, CONFIG, LEDGER) if not (folder / name).is_file()]
    if missing:
        raise NotOpened(Text("this is no backup of a whole box ({why})", why=", ".join(missing)))
    manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    if manifest.format != FORMAT:
        raise NotOpened(Text("the backup was made by a newer mcfd ({version})", version=manifest.version))
    return manifest


def _is_known(member: tarfile.TarInfo) -> bool:
    if member.name in (MANIFEST, CONFIG, LEDGER):
        return True
    folder, slash, name = member.name.partition("/")
    return f"{folder}{slash}" in (FILES, AUTHORITY) and "/" not in name and ".." not in name and bool(name)


def settings_in(folder: Path, config: Path) -> Settings:
    """Those of the archive, as they are in force once its configuration stands at `config`. SettingsError."""
    return load(folder / CONFIG, environ={}, stands_at=config)


def put_back(folder: Path, settings: Settings, config: Path, *, stamp: str) -> list[Path]:
    """Everything but the ledger, the configuration last: what is half there after a power cut starts nothing, and the same again
    finishes it. Only where the archive's own configuration says. A configuration that is there is kept aside; the paths written."""
    written = []
    for each in belongings(settings):
        source = folder / each.name
        if source.is_file():
            _write(each.path, source.read_bytes(), each.mode)
            written.append(each.path)
    if config.exists():
        config.replace(config.with_name(f"{config.name}.replaced-{stamp}"))
    # The daemon, which is not root, reads it through the group of its folder (systemd/mcfd.tmpfiles).
    config.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    group = config.parent.stat().st_gid if os.geteuid() == 0 else -1
    write_whole(config, (folder / CONFIG).read_bytes(), 0o640, gid=group)
    return [*written, config]


def _read(path: Path) -> bytes:
    with as_owner(path.parent):
        return path.read_bytes()


def _write(path: Path, content: bytes, mode: int) -> None:
    with as_owner(path.parent):
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        write_whole(path, content, mode)
