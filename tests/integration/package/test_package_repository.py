"""Our own apt repository on a box that sells: from a stick and over HTTP, what spoils it, and upgrades at night."""

import re
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from support.box.package import other_version, own_arch
from support.box.repository import publish, secret_key
from support.box.shop import Shop, open_shop, until
from support.simulator.control import ordered

pytestmark = pytest.mark.long

STICK = "/media/stick"
SOURCES = "/etc/apt/sources.list.d/mcfd.sources"
UNIT = "/etc/systemd/system/machine.service"
CONTROL = "/run/machine/control"
DAY = 86_400
NUMBERS = count()
APT = ("apt-get", "-y", "-o", "Dpkg::Options::=--force-confold")


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        yield shop


@pytest.fixture(scope="module")
def stick(shop: Shop) -> Path:
    """A repository on a stick in the box, and in the box's list of sources. The files of the shop that was opened before lie in a layer below, where dpkg
    cannot put its hard links back (ESTALE), as it can on every disk: they are laid out once more."""
    secret_key()
    folder = shop.box.path(STICK)
    folder.mkdir()
    publish(folder, shop.package, url=f"file:{STICK}")
    shop.box.run("cp", f"{STICK}/mcfd.sources", SOURCES)
    anew = "dpkg --listfiles mcfd | tar -cP --no-recursion -T - -f /run/files.tar && tar -xPf /run/files.tar"
    shop.box.run("sh", "-c", anew)
    return folder


def newer(shop: Shop) -> Path:
    """A package of a version above all that there have been."""
    return other_version(shop.package, f"9.{next(NUMBERS)}")


def version_of(package: Path) -> str:
    return package.name.split("_")[1]


def offered(shop: Shop) -> str:
    """The version that apt would install."""
    output = shop.box.run("apt-cache", "policy", "mcfd").stdout
    return next(line.split()[1] for line in output.splitlines() if "Candidate:" in line)


def test_an_upgrade_from_a_stick_that_is_pulled_out_in_the_middle(shop: Shop, stick: Path) -> None:
    """`apt update && apt upgrade` with a stick in the box: signed, checked, offered. While dpkg lays out the new files the package ends: dpkg
    puts the old ones back, the daemon serves, and with the stick in its place again the upgrade goes through; the shop sells on with
    everything it had."""
    shop.sell()
    package, before = newer(shop), shop.version()
    publish(stick, package, url=f"file:{STICK}")
    shop.box.run("apt-get", "update", "--error-on=any")
    assert offered(shop) == version_of(package)
    inside = f"{STICK}/pool/{package.name}"
    # After apt has compared the hash, before dpkg reads the file.
    cut = ("-o", f"DPkg::Pre-Invoke::=truncate --size=4M {inside}")
    failed = shop.box.run(*APT, *cut, "upgrade", check=False)
    assert failed.returncode != 0
    assert "unexpected end of file" in failed.stdout + failed.stderr
    assert not shop.box.path("/usr/lib/mcfd.previous").exists()
    assert shop.box.path("/usr/lib/mcfd/daemon/__pycache__/__init__.cpython-313.pyc").exists()
    shop.assert_it_sells(before)
    shop.box.path(inside).write_bytes(package.read_bytes())
    shop.box.run(*APT, "upgrade")
    assert shop.version() == version_of(package)
    shop.sell()
    shop.assert_nothing_is_lost()


@pytest.fixture
def online(shop: Shop, stick: Path) -> Iterator[str]:
    """The same repository over HTTP, from a server in the box."""
    web = f"web-{time.monotonic_ns()}.service"  # systemd remembers a unit for a moment after its end
    shop.box.run("systemd-run", f"--unit={web}", "python3", "-m", "http.server", "-d", STICK, "-b", "127.0.0.1", "8088")
    url = "http://127.0.0.1:8088"
    sources = shop.box.path(SOURCES)
    before = sources.read_text()
    sources.write_text(before.replace(f"file:{STICK}", url))
    wait = "import socket, time\nwhile socket.socket().connect_ex(('127.0.0.1', 8088)): time.sleep(0.05)"
    shop.box.run("timeout", "60", "python3", "-c", wait)
    yield url
    sources.write_text(before)
    shop.box.run("systemctl", "stop", web)
    # A list dated ahead would be kept against every later one, without a word.
    shop.box.run("sh", "-c", "rm -f /var/lib/apt/lists/127.0.0.1*")


def test_a_tampered_index_is_refused(shop: Shop, stick: Path, online: str) -> None:
    """One byte of the index, of what is signed, or another's key: apt says so, and nothing of it is offered or installed."""
    publish(stick, url=online)
    shop.box.run("apt-get", "update", "--error-on=any")
    before = offered(shop), shop.version()
    package = newer(shop)
    publish(stick, package, url=online)
    release = stick / "dists/stable/InRelease"
    good = release.read_bytes()
    release.write_bytes(good.replace(b"Origin: mcfd", b"Origin: mcfe"))
    assert_refused(shop, "signature", before)

    publish(stick, url=online, key=secret_key("stranger"))
    assert_refused(shop, "signature", before)

    release.write_bytes(good)
    index = stick / f"dists/stable/main/binary-{own_arch()}"
    number, higher = f"Version: {version_of(package)}".encode(), b"Version: 99"
    for path in [*index.glob("Packages*"), *(index / "by-hash/SHA256").iterdir()]:
        path.write_bytes(path.read_bytes().replace(number, higher.ljust(len(number), b"9"))[:-1] + b" ")
    assert_refused(shop, "hash sum mismatch", before)

    publish(stick, url=online)
    shop.box.run("apt-get", "update", "--error-on=any")
    assert offered(shop) == version_of(package)


def assert_refused(shop: Shop, reason: str, before: tuple[str, str]) -> None:
    """`before` is what was offered and in use before. HTTP tells what changed by the second: the list in the box is made one of yesterday, or
    what was spoiled within the second would not be fetched."""
    shop.box.run("sh", "-c", "touch --no-create --date=yesterday /var/lib/apt/lists/127.0.0.1*")
    done = shop.box.run("apt-get", "update", "--error-on=any", check=False)
    assert done.returncode != 0
    output = (done.stdout + done.stderr).lower()
    assert reason in output or "not signed" in output, output
    assert (offered(shop), shop.version()) == before


def test_a_box_whose_clock_is_behind(shop: Shop, stick: Path, online: str) -> None:
    """The index is from the box's future (ten days ahead here): an ordinary source is "not valid yet", ours is taken. Its signature is
    as old as the key, because Debian 13 takes none from the future."""
    publish(stick, url=online, at=int(time.time()) + 10 * DAY)
    sources = shop.box.path(SOURCES)
    ours = sources.read_text()
    sources.write_text(ours.replace("Check-Date: no\n", ""))
    done = shop.box.run("apt-get", "update", "--error-on=any", check=False)
    sources.write_text(ours)
    assert done.returncode != 0
    assert "not valid yet" in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
    again = shop.box.run("apt-get", "update", "--error-on=any", check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    publish(stick, url=online)


def test_at_night_it_upgrades_by_itself_unless_the_shop_sells(shop: Shop, stick: Path) -> None:
    """The timer waits for the closed hours and does not make up for a night. Its job, run now: while somebody sells it leaves the box
    alone and says so; otherwise the new version is in."""
    timer = shop.box.run("systemctl", "show", "upgrade-mcfd.timer", "--property=ActiveState,Persistent").stdout
    assert set(timer.split()) == {"ActiveState=active", "Persistent=no"}
    package = newer(shop)
    publish(stick, package, url=f"file:{STICK}")
    wait_for_quiet(shop, 12)  # in which a sale ends on a busy machine, too
    before = shop.version()
    job = threading.Thread(target=shop.box.run, args=("systemctl", "start", "upgrade-mcfd.service"))
    job.start()
    while job.is_alive():
        shop.sell()
        time.sleep(0.2)
    job.join()
    assert shop.version() == before
    output = shop.box.run("journalctl", "--no-pager", "--unit=upgrade-mcfd.service").stdout
    assert "the shop is selling" in output

    wait_for_quiet(shop, 1)
    shop.box.run("systemctl", "start", "upgrade-mcfd.service")
    assert shop.version() == version_of(package), shop.box.run(
        "journalctl", "--no-pager", "--unit=upgrade-mcfd.service"
    ).stdout
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_version_with_another_certified_core_waits_for_a_person(shop: Shop, stick: Path) -> None:
    """Of two newer versions the night takes the one whose core is that which runs; the other is named by the job and by doctor, and taken by
    `mcfd upgrade --core`."""
    same = newer(shop)
    other = other_version(shop.package, f"9.{next(NUMBERS)}", _with_another_core)
    publish(stick, same, other, url=f"file:{STICK}")
    wait_for_quiet(shop, 1)
    shop.box.run("systemctl", "start", "upgrade-mcfd.service")
    assert shop.version() == version_of(same)
    output = shop.box.run("journalctl", "--no-pager", "--unit=upgrade-mcfd.service").stdout
    assert f"version {version_of(other)} has another certified core" in output
    doctor = shop.box.run("mcfd", "doctor", "--json", check=False).stdout
    assert '"upgrade"' in doctor
    assert version_of(other) in doctor
    shop.box.run("mcfd", "upgrade", "--core")
    assert shop.version() == version_of(other)
    assert '"upgrade"' not in shop.box.run("mcfd", "doctor", "--json", check=False).stdout
    shop.sell()
    shop.assert_nothing_is_lost()


def _with_another_core(root: Path) -> None:
    control = root / "DEBIAN/control"
    control.write_text(re.sub(r"^Mcfd-Core: .*$", "Mcfd-Core: " + "0" * 64, control.read_text(), flags=re.MULTILINE))


def wait_for_quiet(shop: Shop, seconds: int) -> None:
    """So long the job looks for sales, instead of five minutes."""
    folder = "/run/systemd/system/upgrade-mcfd.service.d"
    result = f"[Service]\\nEnvironment=MCFD_UPGRADE_QUIET_SECONDS={seconds}\\n"
    shop.box.run("sh", "-c", f"mkdir -p {folder} && printf '{result}' > {folder}/soon.conf && systemctl daemon-reload")


@pytest.fixture
def slow_machine(shop: Shop) -> Iterator[None]:
    """On a line where an invoice of ten items takes twelve seconds, one of seven less than the ten that a stop leaves it."""
    quick = shop.box.path(UNIT).read_text()
    start_machine(shop, quick.replace("--baud 0", f"--baud 1200 --control {CONTROL}"))
    yield
    start_machine(shop, quick)


def start_machine(shop: Shop, unit: str) -> None:
    shop.box.path(UNIT).write_text(unit)
    shop.box.run("systemctl", "daemon-reload")
    shop.box.run("systemctl", "restart", "machine.service")


@pytest.mark.usefixtures("slow_machine")
def test_an_invoice_on_the_line_is_ended_before_the_daemon_stops(shop: Shop, stick: Path) -> None:
    """An upgrade that begins in the middle of an invoice waits: the till has its certification, and the new version has it in its ledger."""
    shop.sell()
    package = newer(shop)
    publish(stick, package, url=f"file:{STICK}")
    shop.box.run("apt-get", "update", "--error-on=any")
    answers: list[tuple[int, dict[str, object]]] = []
    till = threading.Thread(target=lambda: answers.append(shop.certify("FV-LAST", items=7)))
    upgrade = threading.Thread(target=lambda: shop.box.run(*APT, "upgrade"))
    till.start()
    until(lambda: ordered(shop.box.seen_inside(CONTROL), "snapshot", log=False)["stage"] == "items")
    upgrade.start()
    until(lambda: shop.unit("ActiveState") == "deactivating")
    assert till.is_alive()
    till.join()
    upgrade.join()
    assert answers[0][0] == 200, answers
    assert shop.version() == version_of(package)
    shop.sold.append("FV-LAST")
    shop.assert_nothing_is_lost()
