"""What the package's postinst does with byte code: complete, and taken over from the version before where that is the same."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from support.box.mounts import fill, small_disk

SCRIPT = Path(__file__).parents[2] / "packaging/box/compile_modules.py"


def compile_in(folder: Path, *before: Path) -> None:
    subprocess.run([sys.executable, "-IS", SCRIPT, folder, *before], check=True, timeout=60)


def code_of(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(source)))


def program(tmp_path: Path) -> tuple[Path, Path]:
    """A program with byte code, kept as preinst keeps it, and its files laid anew without any."""
    folder, previous = tmp_path / "mcfd", tmp_path / "mcfd.previous"
    (folder / "core").mkdir(parents=True)
    (folder / "core/same.py").write_text("VALUE = 1\n")
    (folder / "core/changed.py").write_text("VALUE = 1\n")
    compile_in(folder)
    shutil.copytree(folder, previous)
    shutil.rmtree(folder / "core/__pycache__")
    return folder, previous


def test_byte_code_of_the_same_source_is_taken_over(tmp_path: Path) -> None:
    """Byte for byte, as a mark in it shows; a module that changed, in as many bytes, is compiled."""
    folder, previous = program(tmp_path)
    marked = code_of(previous / "core/same.py").read_bytes() + b"mark"
    code_of(previous / "core/same.py").write_bytes(marked)
    (folder / "core/changed.py").write_text("VALUE = 2\n")
    compile_in(folder, previous)
    assert code_of(folder / "core/same.py").read_bytes() == marked
    result = f"import sys; sys.path.insert(0, {str(folder)!r}); import core.changed, core.same; print(core.changed.VALUE, core.same.VALUE)"
    assert (
        subprocess.run([sys.executable, "-ISB", "-c", result], check=True, capture_output=True, text=True).stdout
        == "2 1\n"
    )
    assert not list(folder.rglob("*.new"))


def test_byte_code_that_is_damaged_or_of_another_place_is_not_taken_over(tmp_path: Path) -> None:
    """Cut off, of another Python, or made for another path: compiled anew, with the path it is at in it."""
    folder, previous = program(tmp_path)
    fresh = tmp_path / "fresh"
    shutil.copytree(folder, fresh)
    code_of(previous / "core/same.py").write_bytes(code_of(previous / "core/same.py").read_bytes()[:30])
    code = code_of(previous / "core/changed.py")
    code.write_bytes(b"xxxx" + code.read_bytes()[4:])
    compile_in(folder, previous)
    for name in ("same", "changed"):
        assert str(folder).encode() in code_of(folder / f"core/{name}.py").read_bytes()
        assert len(code_of(folder / f"core/{name}.py").read_bytes()) > 100
    compile_in(fresh, folder)
    assert str(fresh).encode() in code_of(fresh / "core/same.py").read_bytes()


def test_byte_code_that_is_in_its_place_stays(tmp_path: Path) -> None:
    """Made a second time, nothing is written but what is damaged, or of another source than the one that lies there now."""
    folder, _ = program(tmp_path)
    for name in ("cut", "other"):
        (folder / f"core/{name}.py").write_text("VALUE = 1\n")
    compile_in(folder)
    whole = {name: code_of(folder / f"core/{name}.py").read_bytes() for name in ("same", "cut", "other")}
    code_of(folder / "core/same.py").write_bytes(whole["same"] + b"mark")
    code_of(folder / "core/cut.py").write_bytes(whole["cut"][:-5])
    (folder / "core/other.py").write_text("VALUE = 2\n")
    compile_in(folder)
    assert code_of(folder / "core/same.py").read_bytes() == whole["same"] + b"mark"
    assert code_of(folder / "core/cut.py").read_bytes() == whole["cut"]
    assert code_of(folder / "core/other.py").read_bytes()[8:16] != whole["other"][8:16]


def test_a_module_that_cannot_be_compiled_stops_no_other(tmp_path: Path) -> None:
    """It has no byte code and is told when it is imported; the package is installed all the same."""
    for name, text in (("broken", "def (\n"), ("empty", "VALUE = '\0'\n"), ("sound", "VALUE = 1\n")):
        (tmp_path / f"{name}.py").write_text(text)
    compile_in(tmp_path)
    assert {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc*")} == {"sound"}


def test_a_disk_without_room_has_the_program_alone(tmp_path: Path) -> None:
    """No byte code, no half of it, and no error: an upgrade goes on, and the program starts slower."""
    with small_disk(tmp_path / "disk", 4) as disk:
        for number in range(200):
            (disk / f"module_{number}.py").write_text(f"NAMES = {list(range(300))}\n")
        fill(disk, leave=100_000)
        compile_in(disk)
        assert [*disk.rglob("*.pyc*")] == []
