"""Clients come from `/openapi.json` by the usual generators without a warning, compile strictly, and work with every error typed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.shop import NIM, Machine, Shop
from support.tools import need

pytestmark = pytest.mark.long

HERE = Path(__file__).parent / "generated"
BIN = Path(sys.executable).parent
NODE_PACKAGES = ("@hey-api/openapi-ts@0.99.0", "typescript@5.9.3")
MYPY = """
[mypy]
strict = True
[mypy-mcfd_generated.client]
# The generator's own template hands `*args: object` to httpx.
disable_error_code = arg-type
"""
EXPECTED = {
    "duplicate": "DUPLICATE_INVOICE",
    "invalid": ["INVALID_REQUEST", "payments"],
    "offline": "BRIDGE_OFFLINE",
    "accepted": "waiting",
    "certified_later": "G-7",
    "taken_back": "abandoned",
    "found": "certified",
    "unknown": "NOT_FOUND",
    "z": 1,
    "nim": NIM,
    "wrong": "UNAUTHENTICATED",
    "later": "OF_A_LATER_VERSION",
}


@pytest.fixture
def sandbox(tmp_path: Path) -> Any:
    """A box with nothing but its sandbox; `openapi.json` is what it answers."""
    with Shop(tmp_path, machines=(Machine(tmp_path),)) as shop:
        shop.key("test")
        shop.start_daemon(ready=False)
        (tmp_path / "openapi.json").write_bytes(shop.http.get("/openapi.json").content)
        yield shop


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **environ}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_openapi_python_client(sandbox: Shop) -> None:
    """Not a warning, mypy --strict, and a till that certifies, meets each kind of error, credits, closes and looks up."""
    folder = sandbox.folder
    package = folder / "mcfd_generated"
    # The formatter comes with the tests; images are bytes to a program.
    (folder / "config.json").write_text(
        json.dumps(
            {"content_type_overrides": dict.fromkeys(("image/png", "image/svg+xml"), "application/octet-stream")}
        )
    )
    options = ["--fail-on-warning", "--meta", "none", "--config", "config.json"]
    output = run(
        *(BIN / "openapi-python-client", "generate", *options, "--path", "openapi.json", "--output-path", package),
        cwd=folder,
        PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}",
    )
    assert "arning" not in output
    shutil.copy(HERE / "till.py", folder)
    (folder / "mypy.ini").write_text(MYPY)
    run(BIN / "mypy", "--cache-dir", folder / "mypy", "-p", "mcfd_generated", "-m", "till", cwd=folder)
    stdout = run(sys.executable, "till.py", str(sandbox.http.base_url), sandbox.key("test"), NIM, cwd=folder)
    assert json.loads(stdout) == EXPECTED


def node_tools() -> Path:
    """Where the generator and the compiler are, from npm the first time."""
    need("node")
    need("npm")
    place = Path.home() / ".cache" / f"mcfd-tests-{'-'.join(NODE_PACKAGES).replace('/', '-')}"
    if not (place / "complete").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true, "type": "module"}')
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *NODE_PACKAGES]
        done = subprocess.run(install, cwd=place, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install {', '.join(NODE_PACKAGES)} here: {done.stderr[-300:]}")
        (place / "complete").touch()
    return place / "node_modules"


def test_openapi_ts(sandbox: Shop) -> None:
    """The same with TypeScript: nothing is said, tsc --strict, and the till runs."""
    modules, folder = node_tools(), sandbox.folder
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    (folder / "node_modules").symlink_to(modules)
    config = {
        "input": "openapi.json",
        "output": {"path": "out", "module": {"extension": ".js"}},
        "logs": {"level": "warn"},
    }
    (folder / "openapi-ts.config.mjs").write_text(f"export default {json.dumps(config)};")
    assert "arn" not in run(modules / ".bin/openapi-ts", cwd=folder)
    shutil.copy(HERE / "till.ts", folder)
    options = {
        "strict": True,
        "noUncheckedIndexedAccess": True,
        "noImplicitOverride": True,
        "types": [],
        "outDir": "built",
    }
    options |= {"target": "es2022", "module": "nodenext", "lib": ["es2022", "dom", "dom.iterable"]}
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["till.ts"]}))
    run(modules / ".bin/tsc", "-p", ".", cwd=folder)
    output = run("node", "built/till.js", str(sandbox.http.base_url), sandbox.key("test"), NIM, cwd=folder)
    assert json.loads(output) == EXPECTED
