"""The archive of a closed year as one file (0047 art. 23): a tar in which the parts determine every byte, a manifest
with their SHA-256, signed by the box, and the program that checks all of it without mcfd (`verify_archive`)."""

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final

import msgspec

from daemon.whole_box import verify_archive
from daemon.whole_box.signature import BoxKey
from daemon.whole_box.verify_archive import BLOCK, FORMAT, MANIFEST, SIGNATURE, header

PIECE: Final = 256 * 1024
PROGRAM: Final = Path(verify_archive.__file__)
README: Final = """\
Archive d'un exercice de mcfd (arrêté 2025-0047, art. 23) - Archive of a year of mcfd

Vérifier, sur n'importe quelle machine avec Python 3.9 ou plus récent, sans mcfd et sans réseau :
To check it, on any machine with Python 3.9 or newer, without mcfd and without a network:

    tar -xf {name} verify_archive.py
    python3 -I verify_archive.py {name} {fingerprint}

Le programme nomme la partie de chaque octet changé. L'empreinte dit de quel boîtier vient l'archive : comparez-la avec celle
que ce boîtier affiche (`mcfd backup --new-key`). / The program names the part of each byte that was changed. The fingerprint says
which box made the archive: compare it with the one that the box shows.

manifest.json        qui, quand, le SHA-256 de chaque partie / who, when, the SHA-256 of each part
signature.txt        Ed25519, de la clé du boîtier {key} / of the box's key
chain.jsonl.gz       chaque tentative, reçu, clôture (Z, mois, année), mouvement d'espèces, rapport et copie, dans l'ordre de la
                     chaîne / each attempt, receipt, closure, movement of cash, report and copy, in the order of the chain
decisions.jsonl.gz   ce que des personnes ont décidé d'une tentative en doute / what people decided of attempts in doubt
audit.jsonl.gz       qui a fait quoi sur le boîtier / who did what on the box
letterheads.jsonl.gz ce qui était imprimé en tête et au pied des papiers / what stood above and below papers

Clé publique / public key (hex): {public}
"""

_encoder = msgspec.json.Encoder(decimal_format="number")


def archive_name(nim: str, ifu: str, year: str, number: int) -> str:
    """`number` is the year's closure: a restored ledger closes a year again, under another number."""
    return "-".join(("mcfd", "archive", year, nim.partition("-")[0], *([ifu] if ifu else []), str(number))) + ".tar"


def write_archive(
    file: BinaryIO,
    target: Path,
    key: BoxKey,
    parts: Mapping[str, Iterable[Mapping[str, Any]]],
    manifest: Callable[[], Mapping[str, Any]],
) -> None:
    """Into `file`, which is to be `target`. `parts` are lines of JSON by part; `manifest` is called after they are
    written. OSError."""
    print_of_key = verify_archive.fingerprint(key.public)
    readme = README.format(name=target.name, fingerprint=print_of_key, key=print_of_key, public=key.public.hex())
    texts = {"README.txt": readme.encode(), PROGRAM.name: PROGRAM.read_bytes()}
    with ExitStack() as stack:
        written = {part: stack.enter_context(_packed(lines, target.parent)) for part, lines in parts.items()}
        listings = [_listing(part, [content]) for part, content in texts.items()]
        listings += [_listing(part, _pieces(packed)) for part, packed in written.items()]
        content = _encoder.encode({"format": FORMAT, **manifest(), "parts": listings}) + b"\n"
        _add(file, MANIFEST, [content])
        _add(file, SIGNATURE, [key.sign_archive(content)])
        for part, text in texts.items():
            _add(file, part, [text])
        for part, packed in written.items():
            _add(file, part, _pieces(packed))
        file.write(bytes(2 * BLOCK))


def faults(archive: BinaryIO) -> list[str]:
    """The findings of `verify_archive`; empty without a fault."""
    found: list[str] = []
    archive.seek(0)
    try:
        verify_archive.check(archive, lambda part, text: found.append(f"{part}: {text}"))
    except verify_archive.Broken as broken:
        found.append(": ".join(map(str, broken.args)))
    return found


def _packed(lines: Iterable[Mapping[str, Any]], folder: Path) -> BinaryIO:
    file: BinaryIO = TemporaryFile(dir=folder)  # noqa: SIM115  closed by the caller
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        for line in lines:
            packed.write(_encoder.encode(line) + b"\n")
    return file


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


def _listing(name: str, pieces: Iterable[bytes]) -> dict[str, Any]:
    sha256, size = hashlib.sha256(), 0
    for piece in pieces:
        sha256.update(piece)
        size += len(piece)
    return {"name": name, "size": size, "sha256": sha256.hexdigest()}


def _add(file: BinaryIO, name: str, pieces: Iterable[bytes]) -> None:
    start = file.tell()
    file.write(bytes(BLOCK))
    size = sum(map(file.write, pieces))
    file.write(bytes(-size % BLOCK))
    file.seek(start)
    file.write(header(name, size))
    file.seek(0, 2)
