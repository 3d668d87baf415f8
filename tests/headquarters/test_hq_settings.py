"""The configuration: the example holds every key, and what is wrong is one line that names the key."""

import base64
import json
import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from support.box.mounts import fill, read_only, small_disk
from support.hq.paper_box import PaperBox
from support.shop import BIN, run_program

from common.settings import SettingsError, plain_type
from daemon.settings import Settings
from headquarters.app.settings import HqSettings, load
from headquarters.core.nats_accounts import NatsSeeds, server_conf
from headquarters.store.store import HqStore
from relay.cli import RelaySettings

FILES_OF_INIT = 4
EXAMPLE = Path(__file__).parents[2] / "config" / "hq.toml"


def run(*arguments, **more):
    return run_program("mcfd-hq", [*arguments], os.environ, **more)


@pytest.fixture
def config(tmp_path):
    """With a database beside it."""
    file = tmp_path / "hq.toml"
    file.write_text(f"[storage]\nurl = 'sqlite:///{tmp_path}/hq.sqlite3'\n")
    return file


def test_example(tmp_path):
    """As it is it holds the defaults; with every line in force it has each key that there is."""
    assert load(EXAMPLE) == HqSettings()
    whole = tmp_path / "hq.toml"
    whole.write_text(re.sub(r"(?m)^# ((?:\[|\w+ = ).*)$", r"\1", EXAMPLE.read_text()))
    settings = load(whole)
    findings = settings.findings
    sections = (settings.server, settings.storage, settings.nats, settings.boxes, settings.reports)
    sections += (findings, *findings.webhook, findings.mail)
    named = {f"{name}" for section in sections for name in section.__struct_fields__}
    written = set(re.findall(r"(?m)^(\w+) = ", whole.read_text())) | {"webhook", "mail"}
    assert named <= written
    assert findings.mail.to == ("compta@chaine.example",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[server]\nport = 99999\n", "server.port"),
        ("[server]\ntls_cert = '/x'\n", "server.tls_cert"),
        ("[serve]\n", "serve"),
        ("[findings]\ntell_after = inf\n", "findings.tell_after"),
        ("[reports]\ntimezone = 'Mars/Base'\n", "reports.timezone"),
        ("[nats]\ndurable = 'x'\n", "url"),
        ("nonsense", "key/value"),
        ("[storage]\nurl = 'postgresql://h:port/d'\n", "storage.url"),
        ("[boxes]\nurl = 'ftp://[::'\n", "boxes.url"),
    ],
)
def test_wrong(tmp_path, text, expected):
    file = tmp_path / "hq.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        load(file)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def numbers(kind):
    for each in [getattr(kind, "item_type", None), getattr(kind, "value_type", None)]:
        if each is not None:
            yield from numbers(plain_type(each))
    for each in getattr(kind, "fields", ()):
        yield from numbers(plain_type(each.type))
    if hasattr(kind, "le"):
        yield kind


@pytest.mark.parametrize("kind", [Settings, HqSettings, RelaySettings])
def test_every_number_has_a_largest_value(kind):
    """Of all three programs: one beyond it would fail where it is used."""
    found = [*numbers(msgspec.inspect.type_info(kind))]
    assert found
    assert all(each.le is not None for each in found), found


def test_command_line(tmp_path):
    """Exit code 2 and one line, without a trace."""
    file = tmp_path / "hq.toml"
    file.write_text("[storage]\nurl = 'mysql://root:secret@x/y'\n")
    done = run("keys", "list", "--config", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "storage.url" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("boxes", "accept", "EL02000015-1", "--ledger", ""),
        ("boxes", "code", "EL02000015-1", "--label", "\udcff"),
        ("boxes", "code", "EL02000015-1", "--label", 65 * "x"),
        ("boxes", "code", "EL02000015-1", "--region", "a\nb"),
        ("boxes", "retire", "\udcff"),
        ("keys", "create", "--role", "reader", "--label", "\udcff"),
        ("keys", "create", "--role", "reader", "--label", "a\nb"),
        ("users", "create", " ", "--role", "reader"),
        ("boxes", "code", "EL02000015-1", "--label", "Dassasgho "),
    ],
)
def test_odd_arguments_are_refused_in_one_line(config, arguments):
    """Empty ones, bytes that are no UTF-8, and names that a box which joins would not take."""
    done = run(*arguments, "--config", str(config))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr


def test_keys_of_nats_below_a_file(tmp_path):
    """One line, also where root looks whose the folders are."""
    (tmp_path / "file").touch()
    done = run("nats", "init", f"{tmp_path}/file/keys")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr


def test_keys_of_nats_that_find_no_room_leave_no_file(tmp_path):
    """An empty file of keys would be in the way of the next try."""
    with small_disk(tmp_path / "disk", 1) as disk:
        filler = fill(disk)
        done = run("nats", "init", str(disk))
        assert (done.returncode, "No space" in done.stderr, [*disk.iterdir()]) == (2, True, [filler]), done.stderr
        filler.unlink()
        assert run("nats", "init", str(disk)).returncode == 0


def test_keys_of_nats_that_were_broken_off_are_finished(tmp_path):
    """Killed at each step, the same command finishes them with the keys that are there; a third time is refused."""
    for number in range(1, 30):
        keys = tmp_path / f"{number}"
        keys.mkdir()
        first = ("support.cli.killed", "at", {"number": number, "within": str(keys)})
        done = run("nats", "init", str(keys), first=first)
        if len([*keys.glob("[!.]*")]) < FILES_OF_INIT:
            assert run("nats", "init", str(keys)).returncode == 0, number
        assert len([*keys.glob("[!.]*")]) == FILES_OF_INIT
        again = run("nats", "init", str(keys))
        assert (again.returncode, "File exists" in again.stderr) == (2, True)
        issue = ["nats", "issuer", str(keys), "--to", str(keys / "issuer")]
        killed = run(*issue, first=first)
        if not (keys / "issuer").exists():
            assert run(*issue).returncode == 0, number
        seeds = msgspec.json.decode((keys / "operator-keys.json").read_bytes(), type=NatsSeeds)
        conf = server_conf(seeds, 1).split("operator: ")[1].split()[0]
        assert signing_keys((keys / "users.conf").read_text().split("operator: ")[1].split()[0]) == signing_keys(
            conf
        ), number
        if done.returncode == killed.returncode == 0:
            return
    pytest.fail("they do not end")


def signing_keys(operator: str) -> object:
    """Of an operator's JWT."""
    part = operator.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["nats"].get("signing_keys")


def test_a_disk_that_takes_nothing_is_named(tmp_path):
    """Full, read-only or not there, of which SQLite says the same; and a standard output that is full."""
    file = tmp_path / "hq.toml"
    file.write_text(f"[storage]\nurl = 'sqlite:///{tmp_path}/disk/hq.sqlite3'\n")
    command = ["keys", "list", "--config", str(file)]
    with small_disk(tmp_path / "disk", 2) as disk:
        create = ["keys", "create", "--role", "reader", *command[2:]]
        assert run(*create).returncode == 0
        filler = fill(disk)
        full = run(*create)
        filler.unlink()
        with read_only(disk):
            closed = run(*create)
        assert run(*command).stdout.count("reader") == 1
        with Path("/dev/full").open("w") as output:
            cut = subprocess.run(
                [BIN / "mcfd-hq", *command], stdout=output, stderr=subprocess.PIPE, text=True, check=False
            )
    (tmp_path / "disk").rmdir()
    gone = run(*command)
    messages = ("is full)", "is read-only)", "No such file or directory)", "the output is incomplete")
    for done, message in zip((full, closed, gone, cut), messages, strict=True):
        assert (done.returncode, message in done.stderr, done.stderr.count("\n")) == (3, True, 1), done.stderr


@pytest.fixture
def a_shop(config):
    """The store with one in it."""
    store = HqStore(f"sqlite:///{config.parent}/hq.sqlite3")
    store.open()
    store.register.add("EL02000015-1", PaperBox().key.public, now=1, label="Ouaga", region="Centre")
    yield store
    store.close()


def test_a_closing_time_that_is_none(config, a_shop):
    """A minute or an hour that no clock has is refused, as a word is; nothing is set."""
    for text in ("12:75", "24:00", "9:00", "noon"):
        done = run("boxes", "closing", "EL02000015-1", "--config", str(config), text)
        assert (done.returncode, "neither a time" in done.stderr) == (2, True), text
    assert a_shop.register.box("EL02000015").closes_at is None


def test_another_name(config, a_shop):
    """Of what is given alone, and without the shop's key; neither of them, or no such shop, is refused."""

    def rename(nim: str, *options: str) -> int:
        return run("boxes", "rename", nim, *options, "--config", str(config)).returncode

    assert [
        rename("EL02000015-1"),
        rename("EL02000016-1", "--label", "x"),
        rename("EL02000015-1", "--label", "\n"),
    ] == [2] * 3
    assert rename("EL02000015", "--label", "Bobo") == 0
    box = a_shop.register.box("EL02000015")
    assert (box.label, box.region) == ("Bobo", "Centre")
