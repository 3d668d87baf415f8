"""Archives of a whole box as a stranger would make them: any members, sealed for a key, with any signature or none."""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from daemon.whole_box.archive import CONFIG, FORMAT, LEDGER, MANIFEST, Manifest
from daemon.whole_box.sealed import opened, sealed

Change = Callable[[tarfile.TarFile], None]


def members(file: Path, identity: str) -> dict[str, bytes]:
    """What is in an archive."""
    with (
        file.open("rb") as source,
        opened(source, identity=identity) as plain,
        tarfile.open(fileobj=plain, mode="r|") as archive,
    ):
        found = ((member.name, archive.extractfile(member)) for member in archive)
        return {name: content.read() for name, content in found if content is not None}


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def seal(target: Path, recipient: str, content: bytes) -> Path:
    with target.open("wb") as file, sealed(file, recipients=[recipient]) as plain:
        plain.write(content)
    return target


def packed(files: Mapping[str, bytes]) -> bytes:
    """A tar of exactly these members, in this order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            add(archive, name, content)
    return buffer.getvalue()


def box(
    config: str, ledger: bytes, files: Mapping[str, bytes] | None = None, *, at: str = "/etc/mcfd/mcfd.toml"
) -> bytes:
    """A tar as mcfd 0.1.0 made it: without a signature."""
    manifest = msgspec.json.encode(Manifest(FORMAT, "2026-11-20T02:15:00.000Z", "0.1.0", at))
    return packed({MANIFEST: manifest, CONFIG: config.encode(), **(files or {}), LEDGER: ledger})


def tampered(config: str, ledger: bytes, change: Change) -> bytes:
    """The same with whatever `change` puts before the ledger."""
    buffer = io.BytesIO()
    manifest = msgspec.json.encode(Manifest(FORMAT, "2026-11-20T02:15:00.000Z", "0.1.0", ""))
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        add(archive, MANIFEST, manifest)
        add(archive, CONFIG, config.encode())
        change(archive)
        add(archive, LEDGER, ledger)
    return buffer.getvalue()
