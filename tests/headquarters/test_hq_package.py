"""The package `mcfd-hq`, built, unpacked and run by Debian's own Python with nothing but what is in it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
from support.box.package import built_headquarters
from support.hq.paper_box import PaperBox
from support.receivers.nats_server import free_port
from support.shop import wait_for

TREE = Path(__file__).parents[2]
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    directory = tmp_path_factory.mktemp("package")
    subprocess.run(["dpkg-deb", "-x", str(built_headquarters()), str(directory / "root")], check=True)
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


def test_it_runs_on_postgresql(unpacked, tmp_path, cluster):
    """The package's own program with Debian's PostgreSQL: tables made, ready, a closure taken with a receipt, ended by SIGTERM."""
    box, url = PaperBox(), cluster.database()
    file = tmp_path / "hq.toml"
    file.write_text(
        f'[server]\nport = {free_port()}\n[storage]\nurl = "{url}"\nregister_copy = "{tmp_path}/register.json"\n'
    )
    main = "from headquarters.cli import main; main()"
    run(unpacked, main, "boxes", "add", box.nim, "--public-key", box.key.public, "--config", str(file))
    code = f"import sys; sys.path.insert(0, {str(unpacked / 'usr/lib/mcfd-hq')!r}); {main}"
    base = f"http://127.0.0.1:{re.search(r'port = ([0-9]+)', file.read_text())[1]}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([PYTHON, "-ISB", "-c", code, "run", "--config", str(file)], stdout=log, stderr=log)
    try:
        wait_for(lambda: is_ready(base), "headquarters is ready")
        headers, body = box.sent(box.close())
        answer = httpx.post(f"{base}/closures", headers=headers, content=body, trust_env=False, timeout=30)
        assert (answer.status_code, answer.json()["id"]) == (200, headers["webhook-id"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        cluster.drop(url)


def is_ready(base):
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{base}/health/ready", trust_env=False, timeout=5).status_code == 200
    return False
