from pathlib import Path

from bridge.ports import FoundPort, find_ports


def make_tty(root: Path, name: str, device: str, **attributes: str) -> None:
    """A tty as sysfs shows it: the class directory links to where the device hangs."""
    place = root / "devices" / device
    node = place / "tty" / name
    node.mkdir(parents=True)
    (node / "device").symlink_to(place)
    for attribute, value in attributes.items():
        (node / attribute).write_text(value + "\n")
    (root / "class").mkdir(exist_ok=True)
    (root / "class" / name).symlink_to(node)
    (root / "dev").mkdir(exist_ok=True)
    (root / "dev" / name).touch()


def make_usb(root: Path, device: str, **attributes: str) -> None:
    place = root / "devices" / device
    place.mkdir(parents=True, exist_ok=True)
    for attribute, value in attributes.items():
        (place / attribute).write_text(value + "\n")


def test_a_usb_machine_is_found_with_its_stable_name(tmp_path):
    """An ACM device and a USB-serial one (one level deeper) say vendor, product and serial; the udev rule's name goes first."""
    make_tty(tmp_path, "ttyACM0", "usb1/1-1/1-1:1.0")
    make_usb(tmp_path, "usb1/1-1", idVendor="03eb", idProduct="6119", manufacturer="MCF", product="CDC", serial="42")
    make_tty(tmp_path, "ttyUSB0", "usb1/1-2/1-2:1.0/ttyUSB0")
    make_usb(tmp_path, "usb1/1-2", idVendor="067b", idProduct="2303", product="USB-Serial")
    dev = tmp_path / "dev"
    (dev / "serial/by-id").mkdir(parents=True)
    (dev / "serial/by-id/usb-MCF").symlink_to(dev / "ttyACM0")
    (dev / "serial/by-id/usb-PL").symlink_to(dev / "ttyUSB0")
    (dev / "mcf-at-1_1").symlink_to(dev / "ttyACM0")
    (dev / "mcf-42").symlink_to(dev / "ttyACM0")
    assert find_ports(tmp_path / "class", dev) == [
        FoundPort(dev / "ttyACM0", dev / "mcf-42", "03eb:6119", "MCF CDC", "42"),
        FoundPort(dev / "ttyUSB0", dev / "serial/by-id/usb-PL", "067b:2303", "USB-Serial"),
    ]


def test_what_is_no_port_is_left_out(tmp_path):
    """A console, and a ttyS without a chip, are not shown; a ttyS with one is. Where the kernel talks, nobody should ask for a machine: it is marked."""
    make_tty(tmp_path, "ttyS0", "platform/serial8250", type="4")
    make_tty(tmp_path, "ttyS1", "platform/serial8250", type="0")
    make_tty(tmp_path, "ttyAMA0", "platform/serial0")
    (tmp_path / "class" / "tty0").mkdir()
    (tmp_path / "class/console").mkdir()
    (tmp_path / "class/console/active").write_text("tty0 ttyAMA0\n")
    dev = tmp_path / "dev"
    found = find_ports(tmp_path / "class", dev)
    assert FoundPort(dev / "ttyS0", dev / "ttyS0") in found
    assert [(port.path.name, port.console) for port in found] == [("ttyAMA0", True), ("ttyS0", False)]


def test_of_several_links_the_better_name_is_shown(tmp_path):
    """By serial number before by socket before the system's own, and of one kind the first by name."""
    make_tty(tmp_path, "ttyACM0", "usb1/1-1/1-1:1.0")
    dev = tmp_path / "dev"
    (dev / "serial/by-id").mkdir(parents=True)
    names = ("serial/by-id/usb-b", "serial/by-id/usb-a", "mcf-at-2", "mcf-at-1", "mcf-b", "mcf-7", "mcf-ab", "mcf-aa")
    for name in names:
        (dev / name).symlink_to(dev / "ttyACM0")
        assert [port.stable for port in find_ports(tmp_path / "class", dev)] == [dev / name]
