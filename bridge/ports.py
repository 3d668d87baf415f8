"""The serial ports of this box, from sysfs, and the programs that have one open, from /proc: no port is opened, so no
line is disturbed. Only root sees the programs of all users."""

import os
from pathlib import Path

import msgspec

SYS = Path("/sys/class/tty")
DEV = Path("/dev")
STABLE = ("serial/by-id/*", "mcf-at-*", "mcf-[!a]*", "mcf-a[!t]*")
"""Links with permanent names, the better later: the system's own, our udev rule's by USB socket, by serial number."""

NO_UART = "0"
"""`type` of a ttyS without a chip: the kernel only reserves its name."""
PROC = Path("/proc")
FAR_END = "ptmx"
"""The process with this open is the far end of a pseudo-terminal: the machine (a simulator), not another till."""


class FoundPort(msgspec.Struct, frozen=True):
    """`stable` is the best name for a configuration, `path` if there is no better one; `usb` as `03eb:6119`; `console`:
    the system itself uses the port (a Raspberry Pi's own port by default)."""

    path: Path
    stable: Path
    usb: str = ""
    product: str = ""
    serial: str = ""
    console: bool = False


def find_ports(sys: Path = SYS, dev: Path = DEV) -> list[FoundPort]:
    """Sorted by name, without pseudo-terminals."""
    # Device → link; the best name last, so that it wins.
    links = {link.resolve(): link for pattern in STABLE for link in sorted(dev.glob(pattern), reverse=True)}
    consoles = _read(sys / "console" / "active").split()
    entries = [each for each in sorted(sys.glob("*")) if (each / "device").exists() and _read(each / "type") != NO_UART]
    found = [_found(entry, dev, links) for entry in entries]
    return [msgspec.structs.replace(port, console=port.path.name in consoles) for port in found]


def _found(entry: Path, dev: Path, links: dict[Path, Path]) -> FoundPort:
    path = dev / entry.name
    device = (entry / "device").resolve()
    usb = next((above for above in (device, *device.parents) if (above / "idVendor").is_file()), None)
    stable = links.get(path.resolve(), path)
    if usb is None:
        return FoundPort(path, stable)
    product = " ".join(word for word in (_read(usb / "manufacturer"), _read(usb / "product")) if word)
    return FoundPort(
        path, stable, f"{_read(usb / 'idVendor')}:{_read(usb / 'idProduct')}", product, _read(usb / "serial")
    )


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


class Holder(msgspec.Struct, frozen=True):
    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def find_holders(device: Path, proc: Path = PROC) -> list[Holder]:
    """Processes, except this one, that have the device (or a link to it) open."""
    target = os.path.realpath(device)
    identity = _identity(target)
    others = (process for process in proc.glob("[0-9]*") if int(process.name) != os.getpid())
    found = [
        Holder(int(process.name), _read(process / "comm") or "?")
        for process in others
        if _holds(process, target, identity)
    ]
    return sorted(found, key=lambda holder: holder.pid)


def _holds(process: Path, target: str, identity: tuple[int, int] | None) -> bool:
    """Compares the device too: a container has a /dev/pts/0 of its own."""
    holds = False
    try:
        with os.scandir(process / "fd") as descriptors:
            for descriptor in descriptors:
                leads_to = _link(descriptor.path)
                if leads_to.endswith(FAR_END):
                    return False
                holds = holds or (leads_to == target and _identity(descriptor.path) == identity)
    except OSError:  # no permission, or the process has ended
        return False
    return holds


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  as below
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  thousands of them: strings are faster
    except OSError:
        return ""
