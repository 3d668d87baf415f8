"""The checks of `mcfd doctor` that need no machine, one by one; with one: tests/acceptance/box/test_doctor.py."""

import os
import re
import shutil
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.cli.command import Command
from support.receivers.authority import Authority

from daemon import owner
from daemon.cli.commands import doctor
from daemon.core.delivery import Backlog
from daemon.core.ledger.outage import Outage
from daemon.doctor import wording
from daemon.doctor.box import check_box_clock, check_certificate, check_company, check_disk, check_secrets
from daemon.doctor.ledger import check_keys, check_outage, check_owner, check_upstream
from daemon.doctor.line import check_clock, check_line, check_permissions, check_port, check_tax_server
from daemon.doctor.service import MachineHealth, Service, check_front, check_service
from daemon.doctor.wording import NAMES
from daemon.paper.shop import cadastral
from daemon.settings import Place, Settings, load
from daemon.settings.check import hidden_files
from daemon.tls.authority import create

pytestmark = pytest.mark.usefixtures("in_english")

MACHINE = '[[machine]]\nnim = "EL02000015-1"\nport = "/dev/mcf-1"\n'
NIM = "EL02000015-1"
HOUR = 3_600_000


def settings(folder: Path, text: str = "") -> Settings:
    file = folder / "mcfd.toml"
    file.write_text(f'{text}\n[storage]\npath = "mcfd.sqlite3"\n{MACHINE}')
    return load(file, {})


def test_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than the reserve fails, less than ten times that warns; a disk that went read-only fails whatever its room, and so does a ledger that may grow no more."""
    box = settings(tmp_path)
    for megabytes, state in ((31, "fail"), (33, "warn"), (321, "ok")):
        usage = SimpleNamespace(free=megabytes * 1024 * 1024)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        assert check_disk(box).state == state
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert "read-only" in check_disk(box).found
    monkeypatch.undo()
    limited = load(box.file, {"MCFD_STORAGE_MAX_SIZE_MB": "34"})
    with closing(sqlite3.connect(box.storage.path)) as ledger:
        for change, state in (
            ("CREATE TABLE filler AS SELECT zeroblob(1000000)", "ok"),
            ("INSERT INTO filler VALUES (zeroblob(1100000))", "fail"),
            ("DROP TABLE filler", "ok"),  # the file is as large, and its pages are used again
        ):
            ledger.execute(change)
            ledger.commit()
            assert check_disk(limited).state == state, change
    gone = load(box.file, {"MCFD_STORAGE_PATH": str(tmp_path / "gone/mcfd.sqlite3")})
    assert check_disk(gone).state == "fail"


def test_the_daemon_that_answers() -> None:
    """Ours, an older one, nobody, somebody else. 1970 is a failure: signatures, certificates and reports would carry it."""
    here = "http://127.0.0.1:8480"
    assert check_service(Service(here, version="2"), "2").state == "ok"
    assert check_service(Service(here, version="1"), "2").state == "warn"
    assert check_service(Service(here, problem="Connection refused"), "2").state == "fail"
    stranger = check_service(Service(here, problem="no HTTP", stranger=True), "2")
    assert (stranger.state, "ss -ltnp" in stranger.todo) == ("fail", True)
    assert [check_box_clock(datetime(year, 1, 1, tzinfo=UTC)).state for year in (1970, 2026)] == ["fail", "ok"]


def test_what_tills_are_shown(tmp_path: Path) -> None:
    """Nothing on loopback, a warning in clear, a certificate by its dates with a month to renew it, a failure without one."""
    plain = settings(tmp_path, '[server]\nhost = "0.0.0.0"\nallow_plain_lan = true')
    assert check_certificate(settings(tmp_path)).state == "ok"
    assert check_certificate(plain).state == "warn"
    internal = settings(tmp_path, '[server]\ntls = "internal"\ntls_folder = "tls"')
    lost = check_certificate(internal)
    assert (lost.state, "restore --all" in lost.todo) == ("fail", True)
    now = datetime.now(UTC)
    create(tmp_path / "tls", ("localhost",), now)
    days = {0: "ok", 368: "ok", 375: "warn", 398: "fail", -400: "fail"}
    assert {day: check_certificate(internal, now + timedelta(days=day)).state for day in days} == days
    for expired, state in ((False, "warn"), (True, "fail")):
        pem = Authority(tmp_path).issue(expired=expired)  # three days, or none
        server = f'[server]\ntls_cert = "{pem}"\ntls_key = "{pem}"'
        assert check_certificate(settings(tmp_path, server)).state == state


def test_haproxy_is_looked_for_where_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HTTPS and on the network; each finding has a name that people read."""
    assert check_front(settings(tmp_path).server) == []
    for server in ('host = "0.0.0.0"\nallow_plain_lan = true', 'tls = "internal"'):
        for found, state in (("/usr/sbin/haproxy", "ok"), (None, "fail")):
            monkeypatch.setattr("daemon.doctor.service.program", lambda found=found: found)
            (finding,) = check_front(settings(tmp_path, f"[server]\n{server}").server)
            assert finding.state == state
            assert finding.check in NAMES


def test_every_check_has_a_name_for_people() -> None:
    """A finding without one could not be shown."""
    checks = (*Path(wording.__file__).parent.glob("*.py"), Path(doctor.__file__))
    found = {name for file in checks for name in re.findall(r'\bCheck\("(\w+)"', file.read_text())}
    assert found == set(NAMES)


def test_secrets(tmp_path: Path) -> None:
    """Readable by others: a warning with the command that ends it; no secret at all: a failure, and not a word of it."""
    secret = tmp_path / "s"
    secret.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    box = settings(tmp_path, '[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "s"')
    secret.chmod(0o644)
    (found,) = check_secrets(box)
    assert (found.state, found.todo) == ("warn", f"sudo chmod 600 {secret}")
    secret.chmod(0o600)
    assert [finding.state for finding in check_secrets(box)] == ["ok"]
    secret.write_text("whsec_%%%\n")
    (found,) = check_secrets(box)
    assert (found.state, "%%%" in found.found) == ("fail", False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read what the daemon cannot")
@pytest.mark.parametrize(("place", "state"), [("s", "fail"), ("credentials/s", "ok")])
def test_a_file_that_the_daemon_may_not_read(folder: Path, place: str, state: str) -> None:
    """Doctor and `config check` name it though root reads it; in the folder from which systemd hands files over it is right."""
    home, file = folder / "var", folder / place
    for each in (home, file.parent):
        each.mkdir(exist_ok=True)
    os.chown(home, 65534, 65534)
    file.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    file.chmod(0o600)
    section = f'[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "{place}"\n'
    mcfd = Command(folder, f'{section}[storage]\npath = "var/mcfd.sqlite3"\n{MACHINE}')
    (found,) = check_secrets(load(mcfd.config, {}))
    assert (found.state, "upstream.secret_file" in found.todo) == (state, state == "fail")
    done = mcfd.run("config", "check")
    assert (done.returncode, "upstream.secret_file" in done.stderr) == ((2, True) if state == "fail" else (0, False))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_file_for_a_group_of_the_daemons_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Debian's `ssl-cert`, whose members read /etc/ssl/private: the daemon has all groups of its user, and reads it."""
    home, file, group = folder / "var", folder / "s", 54_321
    home.mkdir()
    os.chown(home, 65534, 65534)
    file.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    file.chmod(0o640)
    os.chown(file, 0, group)
    section = '[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "s"\n'
    (folder / "mcfd.toml").write_text(f'{section}[storage]\npath = "var/mcfd.sqlite3"\n{MACHINE}')
    box = load(folder / "mcfd.toml", {})
    owner._groups.cache_clear()
    assert [key for key, _ in hidden_files(box)] == ["upstream.secret_file"]
    owner._groups.cache_clear()
    monkeypatch.setattr(os, "getgrouplist", lambda _, gid: [gid, group])
    assert [*hidden_files(box)] == []
    owner._groups.cache_clear()


@pytest.mark.parametrize("line", ['recipients = ["age1x"]', 'passphrase_file = "missing"'])
def test_backups_that_cannot_be_sealed(tmp_path: Path, line: str) -> None:
    """A recipient that is no public key, and a passphrase that is not there: each nightly backup would fail."""
    (found,) = check_secrets(settings(tmp_path, f"[backup]\n{line}"))
    assert found.state == "fail"


def test_a_port_by_a_name_that_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ttyACM0 is whichever came first after a restart."""
    machine = SimpleNamespace(nim=NIM, port=Place("/dev/ttyACM0"))
    monkeypatch.setattr(Path, "stat", lambda _: SimpleNamespace(st_mode=stat.S_IFCHR))
    found = check_port(machine)  # type: ignore[arg-type]  # by shape
    assert (found.state, "/dev/serial/by-id/" in found.todo) == ("warn", True)


def in_the_daemons_hands(place: Path) -> None:
    """For root of another user, as whom everything is looked at."""
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)


@pytest.mark.parametrize(("mode", "state"), [(0o600, "ok"), (0o400, "fail"), (0o200, "fail")])
def test_who_may_open_a_port(folder: Path, monkeypatch: pytest.MonkeyPatch, mode: int, state: str) -> None:
    """As the kernel decides it for the daemon's user; to read alone, or to write alone, is not enough. Who may not look has no finding."""
    port = folder / "port"
    port.touch(mode)
    for place in (folder, port):
        in_the_daemons_hands(place)
    machine = SimpleNamespace(nim=NIM, port=Place(str(port)))
    box = settings(folder)
    (found,) = check_permissions(machine, box)  # type: ignore[arg-type]  # by shape
    assert found.state == state

    def shut(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "stat", shut)
    assert list(check_permissions(machine, box)) == []  # type: ignore[arg-type]  # by shape


def test_a_ledger_that_another_wrote(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the daemon may not write is named; of a read-only disk another check speaks."""
    ledger, log = folder / "mcfd.sqlite3", folder / "mcfd.sqlite3-wal"
    ledger.touch(0o600)
    log.touch(0o400)
    for place in (folder, ledger, log):
        in_the_daemons_hands(place)
    found = check_owner(ledger, "mcfd")
    assert (found.state, str(log) in found.found, f"{ledger}," in found.found) == ("fail", True, False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert check_owner(ledger, "mcfd").state == "ok"


def test_a_cadastral_reference_of_another_form_is_printed_and_told(tmp_path: Path) -> None:
    """The service starts: it is only a heading. Doctor says what the form is."""
    heading = '[company]\ncadastral = "Section 4, lot 12"\nregime = "RNI"\ntax_office = "DME"'
    box = settings(tmp_path, heading)
    assert cadastral(box.company.cadastral) == "Section 4, lot 12"
    assert [(found.state, "Section 4, lot 12" in found.found) for found in check_company(box)] == [("warn", True)]
    alone = settings(tmp_path, '[company]\ncadastral = "Section 4, lot 12"')
    assert ["Section 4, lot 12" in found.found for found in check_company(alone)] == [False, True]
    right = settings(tmp_path, heading.replace("Section 4, lot 12", "1234 056 0078"))
    assert [found.state for found in check_company(right)] == ["ok"]


def test_clock_and_tax_server() -> None:
    """Two minutes and an hour; five days, two before the machine may block itself. Where the box's clock is synchronised, nobody is told to set it."""
    states = {drift: check_clock(NIM, drift).state for drift in (0, -120, 121, -3601, None)}
    assert states == {0: "ok", -120: "ok", 121: "warn", -3601: "fail", None: "warn"}
    words = [check_clock(NIM, drift).found.partition(" off")[0] for drift in (-90, 7500, 86_400, 12 * 86_400)]
    assert words == ["90 s", "2 h", "24 h", "12 d"]
    assert "set-ntp" in check_clock(NIM, 7200).todo
    assert check_clock(NIM, 7200, is_box_right=True).todo == (
        "the box's clock is synchronised: have the machine's set by its supplier"
    )
    assert [check_tax_server(NIM, days, 0, "").state for days in (0, 4, 5, None)] == ["ok", "ok", "warn", "warn"]


def test_the_remedy_for_an_outage_is_that_of_its_reason() -> None:
    """The machine is repaired only where it is at fault; who has to be notified is named for each."""
    todos = {
        reason: check_outage(Outage(1, NIM, reason, since=1, until=0, refused=True), HOUR).todo
        for reason in ("no_answer", "attention", "disk")
    }
    remedies = {reason: todo.partition(";")[0] for reason, todo in todos.items()}
    assert remedies == {
        "no_answer": "repair the machine or take another one into use",
        "attention": "see the other checks of this machine",
        "disk": "see the check of the disk, above",
    }
    assert all("the distributor" in todo for todo in todos.values())


@pytest.mark.parametrize(
    ("code", "todo"),
    [
        ("", "sudo mcfd machine settle EL02000015-1"),
        ("clock_ahead", "set the clock; if the time is right: sudo mcfd time accept"),
        ("pair_not_compared", "connect the other machine of the pair"),
    ],
)
async def test_the_remedy_for_a_machine_that_waits_for_a_person_is_that_of_its_question(
    folder: Path, code: str, todo: str
) -> None:
    box = settings(folder)
    health = MachineHealth(nim=NIM, connected=True, attention="x", attention_code=code, last_error="", waiting=0)
    service = Service("http://127.0.0.1:8480", version="1", machines=(health,))
    found = await check_line(box, box.machine[0], service, 0, is_box_right=True)
    assert [each.todo for each in found if each.check == "machine"] == [todo]


def test_closures_on_their_way(tmp_path: Path) -> None:
    """An hour is a warning, a day a failure, a parked one always; nothing without `[upstream]`."""
    box = settings(tmp_path, '[upstream]\nkind = "nats"\nurl = "nats://127.0.0.1"\ncredentials_file = "shop.creds"')
    now = 100 * HOUR

    def state(waiting: int, parked: int, hours: int) -> str:
        backlog = Backlog(NIM, "live", waiting, parked, now - hours * HOUR if waiting else 0, "", 0, 0)
        return next(check_upstream(box, [backlog], now)).state

    assert [state(1, 0, 0), state(1, 0, 1), state(1, 0, 24), state(0, 1, 0), state(0, 0, 0)] == [
        "ok", "warn", "fail", "fail", "ok",
    ]  # fmt: skip
    assert next(check_upstream(box, [], now)).state == "ok"
    assert next(check_upstream(settings(tmp_path), [], now)).state == "ok"
    assert check_keys(NIM, has_key=False).todo.endswith(f"--nim {NIM}")
