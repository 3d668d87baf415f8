"""The udev rule, read and applied by Debian's own udev to adapters that umockdev makes up."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.box.debian import Debian, debian, need_debian

pytestmark = pytest.mark.long

RULES = Path(__file__).resolve().parents[3] / "systemd/70-mcfd.rules"
HUB = "/devices/pci0000:00/0000:00:14.0/usb1"
DEVICE = f"{HUB}/1-2"
TTY = f"{DEVICE}/1-2:1.0/tty/ttyACM0"
ADAPTER = f"""\
P: /devices/pci0000:00/0000:00:14.0
E: SUBSYSTEM=pci

P: {HUB}
E: SUBSYSTEM=usb
E: DEVTYPE=usb_device

P: {DEVICE}
E: SUBSYSTEM=usb
E: DEVTYPE=usb_device
A: idVendor=@VENDOR@\\n
A: idProduct=@PRODUCT@\\n
@SERIAL@
P: {DEVICE}/1-2:1.0
E: SUBSYSTEM=usb
E: DEVTYPE=usb_interface
A: bInterfaceClass=02\\n
A: bInterfaceNumber=00\\n

P: {TTY}
E: DEVNAME=/dev/ttyACM0
E: SUBSYSTEM=tty
E: MAJOR=166
E: MINOR=0
"""


@pytest.fixture(scope="module")
def box() -> Iterator[Debian]:
    need_debian()
    with debian() as tree:
        tree.path("/usr/lib/udev/rules.d/70-mcfd.rules").write_text(RULES.read_text())
        yield tree


def seen(box: Debian, vendor: str, product: str, serial: str, device: str = TTY) -> tuple[dict[str, str], str]:
    """The properties `device` has after all rules, and everything udev said."""
    text = ADAPTER.replace("@VENDOR@", vendor).replace("@PRODUCT@", product)
    text = text.replace("@SERIAL@", f"A: serial={serial}\\n\n" if serial else "")
    box.path("/root/adapter").write_text(text)
    done = box.run("umockdev-run", "-d", "/root/adapter", "--", "udevadm", "test", "--action=add", device)
    output = done.stdout + done.stderr
    return dict(line.strip().split("=", 1) for line in output.splitlines() if "=" in line and ": " not in line), output


@pytest.mark.parametrize(
    ("vendor", "product"),
    [("03eb", "6119"), ("0403", "6001"), ("1a86", "7523"), ("067b", "23a3"), ("10c4", "ea60")],
)
def test_a_known_adapter_gets_a_name_that_stays(box: Debian, vendor: str, product: str) -> None:
    """A machine of its own, or one behind a common adapter: named by its serial number and by its socket, for dialout only,
    known to systemd, and left alone by ModemManager."""
    tty, text = seen(box, vendor, product, "A1B2C3")
    links = tty["DEVLINKS"].split()
    assert "/dev/mcf-A1B2C3" in links
    assert "/dev/mcf-at-pci-0000_00_14_0-usb-0_2_1_0" in links
    assert (tty["ID_MM_DEVICE_IGNORE"], tty["ID_MM_PORT_IGNORE"]) == ("1", "1")
    assert ":systemd:" in tty["TAGS"]
    assert "70-mcfd.rules:" in text
    assert "MODE 0660" in text


def test_an_adapter_without_a_serial_number_is_named_by_its_socket(box: Debian) -> None:
    """Most CH340 have none: there is no `/dev/mcf-`, but the name of the USB socket is there and stays."""
    tty, _ = seen(box, "1a86", "7523", "")
    ours = [link for link in tty["DEVLINKS"].split() if link.startswith("/dev/mcf-")]
    assert ours == ["/dev/mcf-at-pci-0000_00_14_0-usb-0_2_1_0"]


def test_modem_manager_is_told_at_the_usb_device_too(box: Debian) -> None:
    """It asks there before it looks at any port."""
    device, _ = seen(box, "03eb", "6119", "A1B2C3", DEVICE)
    assert device["ID_MM_DEVICE_IGNORE"] == "1"
    assert "mcf" not in device.get("DEVLINKS", "")


def test_another_device_is_none_of_ours(box: Debian) -> None:
    """A modem keeps its ModemManager and gets no name."""
    for device in (TTY, DEVICE):
        found, _ = seen(box, "12d1", "1506", "A1B2C3", device)
        assert "ID_MM_DEVICE_IGNORE" not in found
        assert "mcf" not in found.get("DEVLINKS", "")


def test_udev_understands_every_line(box: Debian) -> None:
    """udev drops a line it cannot read and says so; of ours it says nothing of the kind, and of a spoiled one it does."""
    _, text = seen(box, "03eb", "6119", "A1B2C3")
    assert complaints(text) == []
    rules = box.path("/usr/lib/udev/rules.d/70-mcfd.rules")
    rules.write_text(RULES.read_text() + 'SYMLINKS+="mcf"\n')
    try:
        _, text = seen(box, "03eb", "6119", "A1B2C3")
    finally:
        rules.write_text(RULES.read_text())
    assert len(complaints(text)) == 1


def complaints(expected: str) -> list[str]:
    """A line about a rule that was read names the file without a device before it."""
    return [
        line for line in expected.splitlines() if "70-mcfd.rules:" in line and not line.startswith(("ttyACM0:", "1-2:"))
    ]
