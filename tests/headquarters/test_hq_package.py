"""The package `mcfd-hq`, built, unpacked and run by Debian's own Python with nothing but what is in it."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from support.tools import need

TREE = Path(__file__).parents[2]
PYTHON = "/usr/bin/python3"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    need("dpkg-deb")
    directory = tmp_path_factory.mktemp("package")
    command = [sys.executable, "packaging/build_hq_deb.py", "--arch", ARCHITECTURES[platform.machine()]]
    subprocess.run([*command, "--output", str(directory)], cwd=TREE, check=True, capture_output=True, timeout=280)
    [package] = directory.glob("mcfd-hq_*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(directory / "root")], check=True)
    return directory / "root"


def run(unpacked, code, *arguments):
    code = f"import sys; sys.path.insert(0, {str(unpacked / 'usr/lib/mcfd-hq')!r}); {code}"
    command = [PYTHON, "-ISB", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_there(unpacked):
    """Each of ours is imported from the package, and PostgreSQL's driver in its compiled form; the daemon is not in it."""
    lib = unpacked / "usr/lib/mcfd-hq"
    files = [
        path.relative_to(lib) for name in ("exchange", "headquarters", "pagekit") for path in (lib / name).rglob("*.py")
    ]
    names = [".".join(file.with_suffix("").parts) for file in files if "migrations" not in file.parts]
    imported = [name for name in names if not name.endswith(("__main__", "demo"))]
    assert len(imported) > 50
    code = f"import importlib; [importlib.import_module(name) for name in {imported!r}]; import psycopg; print(psycopg.pq.__impl__)"
    assert run(unpacked, code).strip() == "binary"
    assert not (lib / "daemon").exists()


def test_its_command_works(unpacked, tmp_path):
    """From an empty database to a key, with its own migrations; the example of the configuration lies where it is looked for."""
    file = tmp_path / "hq.toml"
    file.write_text(f'[storage]\nurl = "sqlite:///{tmp_path}/hq.sqlite3"\n')
    code = "from headquarters.cli import main; main()"
    assert run(unpacked, code, "keys", "create", "--role", "reader", "--config", str(file)).startswith("hq_")
    assert (unpacked / "etc/mcfd-hq/hq.toml.example").read_bytes() == (TREE / "config/hq.toml").read_bytes()
    assert (unpacked / "usr/lib/systemd/system/mcfd-hq.service.d/10-job.conf").exists()
