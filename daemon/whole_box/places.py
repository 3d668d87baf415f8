"""Where a restore writes: into the folders of this box, and nowhere else. The box and the command line say which they are, an archive never."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from common.files import write_whole
from common.settings import named_paths
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.whole_box.archive import NOT_COPIED, Belonging, belongings


class Places(NamedTuple):
    """`folders`: those of the configuration, the ledger and the authority, and what the operator has added."""

    config: Path
    folders: tuple[Path, ...]

    def has(self, path: Path) -> bool:
        return any(folder in path.parents for folder in self.folders)


class OutOfPlace(ValueError):
    """The configuration in an archive has its ledger or its authority where this box has none."""

    def __init__(self, key: str, path: Path) -> None:
        super().__init__(f"{key}: {path}")
        self.key = key
        self.path = path


class RestorePlan(NamedTuple):
    """`outside`: what the configuration names in other folders, by its key; it is not written."""

    ledger: Path
    files: tuple[tuple[Belonging, bytes], ...]
    outside: tuple[tuple[str, Path], ...]


def places_of(config: Path, present: Settings | None, further: Iterable[Path]) -> Places:
    """`present` are the settings in force; without any those of the package count."""
    box = present or Settings()
    folders = (config.parent, box.storage.path.parent, box.tls_home, *further)
    return Places(config, tuple(map(_plain, folders)))


def plan(files: Mapping[str, bytes], settings: Settings, places: Places) -> RestorePlan:
    """What is in an archive, and where it may go by its own `settings`. OutOfPlace."""
    ledger, home = _plain(settings.storage.path), _plain(settings.tls_home)
    if ledger.parent not in places.folders:
        raise OutOfPlace("storage.path", ledger)
    if home not in places.folders and not places.has(home):
        raise OutOfPlace("server.tls_folder", home)
    taken = {places.config}
    found: list[tuple[Belonging, bytes]] = []

    def is_place(path: Path) -> bool:
        return places.has(path) and places.config not in path.parents and not _is_of_ledger(path, ledger)

    for each in belongings(settings):
        path = _plain(each.path)
        if each.name in files and is_place(path) and path not in taken:
            taken.add(path)
            found.append((each._replace(path=path), files[each.name]))
    named = ((key, _plain(path)) for key, path in named_paths(settings) if key not in NOT_COPIED)
    return RestorePlan(ledger, tuple(found), tuple((key, path) for key, path in named if not is_place(path)))


def _is_of_ledger(path: Path, ledger: Path) -> bool:
    """The ledger, or what is kept beside it under its name: its log, its lock, the numbers and revoked keys that outlive it, the ledgers that
    were replaced; or as if one of them were a folder."""
    real = Path(os.path.realpath(ledger))
    within = (path, *path.parents)
    return any(
        each.parent == file.parent and each.name.startswith(file.name) for file in (ledger, real) for each in within
    )


def put_back(planned: RestorePlan, content: bytes, config: Path, *, stamp: str) -> list[Path]:
    """Everything but the ledger, the configuration last: what is half there after a power cut starts nothing, and the same again
    finishes it. A configuration that is there is kept aside; the paths written."""
    for each, file in planned.files:
        with as_owner(each.path.parent):
            each.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            _remove_halves(each.path)
            write_whole(each.path, file, each.mode)
    with as_owner(config.parent):
        config.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        _remove_halves(config)
        if config.exists():
            config.replace(config.with_name(f"{config.name}.replaced-{stamp}"))
        # The daemon, which is not root, reads it through the group of its folder (debian/mcfd.tmpfiles).
        group = config.parent.stat().st_gid if os.geteuid() == 0 else -1
        write_whole(config, content, 0o640, gid=group)
    return [*(each.path for each, _ in planned.files), config]


def _remove_halves(path: Path) -> None:
    """What a restore that was killed had begun to write there (`write_whole`)."""
    for half in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        half.unlink(missing_ok=True)


def _plain(path: Path) -> Path:
    """Absolute, and without a `..` that could lead out of a folder."""
    return Path(os.path.normpath(path.absolute()))
