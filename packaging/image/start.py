#!/usr/bin/python3
"""mcfd on a simulated machine, for developers of tills: first process of the container image (`make image`).

The first start makes a live and a test key; each start prints them. Ledger, machine and keys are in `/var/lib/mcfd`:
mount a volume there to keep them. `MCFD_…` sets any key of the configuration, `MCFD_DEMO_BAUD` the line's speed (0: no
pacing). Not for a shop.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LIBRARIES = os.environ.get("MCFD_LIBRARIES", "/usr/lib/mcfd")
STATE = Path(os.environ.get("MCFD_DEMO_STATE", "/var/lib/mcfd"))
NIM, IFU = "EL02000015-1", "00084440Y"
PATIENCE = 60.0
CONFIG = """\
[server]
host = "0.0.0.0"
allow_plain_lan = true

[storage]
path = "{state}/mcfd.sqlite3"

[[machine]]
nim = "{nim}"
port = "{state}/line"
isf = "1"
operator_id = "1"
operator_name = "Caisse 1"
"""


def main() -> int:
    STATE.mkdir(parents=True, exist_ok=True)
    config = STATE / "mcfd.toml"
    config.write_text(CONFIG.format(state=STATE, nim=NIM), encoding="utf-8")
    baud = os.environ.get("MCFD_DEMO_BAUD", "115200")
    machine = ["--nim", NIM, "--ifu", IFU, "--link", str(STATE / "line"), "--state", str(STATE / "machine.json")]
    (STATE / "line").unlink(missing_ok=True)
    running: list[subprocess.Popen[bytes]] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        running.append(_started("simulator.process.serve", *machine, "--baud", baud))
        _until_there(STATE / "line", running[0])
        for mode, key in _keys(config).items():
            sys.stdout.write(f"{mode:5} {key}\n")
            sys.stdout.flush()
        running.append(_started("daemon.cli", "run", "--config", str(config)))
        while all(process.poll() is None for process in running):
            time.sleep(0.5)
        return 1
    finally:
        for process in reversed(running):  # the daemon finishes its exchange before its machine ends
            process.terminate()
            process.wait()


def _command(module: str, *words: str) -> list[str]:
    code = f"import sys; sys.path.insert(0, {LIBRARIES!r}); from {module} import main; sys.exit(main())"
    return [sys.executable, "-c", code, *words]


def _started(module: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(_command(module, *words), stdout=subprocess.DEVNULL)  # noqa: S603  # our own


def _until_there(line: Path, machine: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not line.exists():
        if machine.poll() is not None or time.monotonic() > deadline:
            sys.exit("mcfd: the simulated machine does not start")
        time.sleep(0.05)


def _keys(config: Path) -> dict[str, str]:
    """Made once and stored readable: they give access only to a simulated machine."""
    file = STATE / "keys"
    if not file.exists():
        lines = []
        for mode in ((), ("--test",)):
            create = _command("daemon.cli", "keys", "create", "--config", str(config), "--nim", NIM, *mode)
            lines.append(subprocess.run(create, check=True, text=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
        file.write_text("".join(lines), encoding="utf-8")
    live, test = file.read_text(encoding="utf-8").split()
    return {"live": live, "test": test}


if __name__ == "__main__":
    sys.exit(main())
