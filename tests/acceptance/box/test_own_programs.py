"""mcfd runs itself as a child process: for a PDF, for its certificate, for commands of the page, after a setup or restore."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.cli.command import CONFIG

from common.sockets import box_names
from daemon.app.page.files import MCFD
from daemon.app.upkeep.housekeeping import Certificate
from daemon.paper.layout import Document
from daemon.paper.pdf import as_pdf
from daemon.settings import load
from daemon.tls.authority import create

AS_IN_THE_PACKAGE = f"""
import sys
sys.path[:0] = {sys.path!r}
import subprocess
from daemon.app.page.files import MCFD
sys.exit(subprocess.run([*MCFD, "--version"]).returncode)
"""


def test_a_package_planted_in_the_working_directory_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root runs mcfd wherever root happens to be, /tmp for example: Python looks for modules there first unless it is forbidden."""
    file = tmp_path / "mcfd.toml"
    file.write_text(f'[server]\ntls = "internal"\ntls_folder = "tls"\n{CONFIG}')
    create(tmp_path / "tls", box_names("127.0.0.1", ()), datetime.now(UTC))
    (tmp_path / "tls/server.pem").unlink()
    settings = load(file, {})
    (tmp_path / "daemon").mkdir()
    (tmp_path / "daemon/__init__.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    subprocess.run([*MCFD, "--version"], check=True, capture_output=True, timeout=60)
    assert as_pdf(Document("FV-1", "fr", ())).startswith(b"%PDF")
    with capture_logs() as logs:
        asyncio.run(Certificate(settings).freshen())
    assert [entry["event"] for entry in logs] == ["certificate.renewed"]
    assert not (tmp_path / "ran").exists()


def test_it_finds_its_modules_where_only_the_parent_knows_them() -> None:
    """The package's programs run with -I and -S, and set the module path themselves."""
    command = [sys.executable, "-IS", "-c", AS_IN_THE_PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd="/")
    assert (done.returncode, done.stdout[:5]) == (0, "mcfd "), done.stderr
