"""The certified core: its digest is of the files that run, and a change of it is made on purpose."""

import shutil
from pathlib import Path

from daemon.core.certified_core import CORE_VERSION, ROOT, core_digest, problem, sources
from daemon.doctor.box import check_homologation
from daemon.settings import load


def copied(folder: Path) -> Path:
    for source in sources():
        target = folder / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return folder


def test_any_change_of_the_core_is_seen(tmp_path: Path) -> None:
    """A byte, a name, a file more or less; a copy elsewhere is the same, and byte code is nothing."""
    copy = copied(tmp_path / "copy")
    assert core_digest(copy) == core_digest()
    (copy / "bridge" / "__pycache__").mkdir()
    (copy / "bridge" / "__pycache__" / "frame.cpython-311.pyc").write_bytes(b"x")
    changes = {
        "byte": lambda root: (root / "bridge" / "frame.py").write_bytes(
            (root / "bridge" / "frame.py").read_bytes()[:-1] + b"#"
        ),
        "name": lambda root: (root / "bridge" / "frame.py").rename(root / "bridge" / "frames.py"),
        "more": lambda root: (root / "daemon" / "core" / "more.py").write_text(""),
        "less": lambda root: (root / "daemon" / "paper" / "shop.py").unlink(),
        "query": lambda root: (root / "daemon" / "store" / "tables" / "book" / "books.sql").write_text(""),
    }
    digests = {core_digest(copy)}
    for name, change in changes.items():
        changed = copied(tmp_path / name)
        change(changed)
        digests.add(core_digest(changed))
    assert len(digests) == 1 + len(changes)


def test_a_change_is_asked_for_by_its_version() -> None:
    """Another digest under the same version, and a version that has no digest yet, fail `make check` in words."""
    assert "raise CORE_VERSION" in problem(f"{CORE_VERSION} {'0' * 64}", core_digest())
    assert "make core" in problem(f"0 {core_digest()}", core_digest())


def test_doctor_knows_what_was_approved(tmp_path: Path) -> None:
    """Nothing is said of a box that has no approval; another core than the approved one is a warning."""
    states = {}
    for name, text in {"none": "", "same": core_digest(), "other": "0" * 64}.items():
        file = tmp_path / f"{name}.toml"
        approval = f'[homologation]\ncore_digest = "{text}"\n' if text else ""
        machine = '[[machine]]\nnim = "EL02000015-1"\nport = "/dev/null"\n'
        file.write_text(f'{approval}[storage]\npath = "mcfd.sqlite3"\n{machine}')
        states[name] = [found.state for found in check_homologation(load(file, {}), core_digest())]
    assert states == {"none": [], "same": ["ok"], "other": ["warn"]}
