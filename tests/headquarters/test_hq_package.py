"""The package `mcfd-hq`: unpacked and run by Debian's own Python with nothing but what is in it; installed in a Debian that boots."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.box.debian import TRIXIE, debian, need_debian, postgresql
from support.box.package import built_headquarters, uncompressed, unpacked
from support.cli.click_paths import path_of, paths
from support.hq.paper_box import PaperBox
from support.shop import wait_for

from headquarters.cli.main import cli

pytestmark = pytest.mark.long

TREE = Path(__file__).parents[2]
PYTHON = "/usr/bin/python3"
UNIT = "mcfd-hq.service"
MAX_BYTES = 12_000_000
MAX_EXPOSED = 1.6
"""By systemd's own scale of 0 to 10: what the daemon's unit has."""
OWN = "/var/lib/mcfd-hq"
LIB = "/usr/lib/mcfd-hq"
PLANT = 'for name in trap.sqlite3 trap.json keys; do ln -s "/etc/planted-$name" "$1/$name"; done'
REFUSED = (3, "storage.url: ")
"""`run` waits for its database instead; systemd starts it as its user."""
TYPED = {
    f"{command} --config /etc/mcfd-hq/trap.toml": REFUSED
    for command in (
        "boxes accept EL02000015-1",
        "boxes add EL02000015-1 --public-key whpk_A7n4bQm0n8yZ4Z7Z0yW1Zb4nU2v4kF6iJ9Qd1x2y3z4=",
        "boxes closing EL02000015-1 20:30",
        "boxes code EL02000015-1",
        "boxes list",
        "boxes rename EL02000015-1 --label Bobo",
        "boxes retire EL02000015-1",
        "boxes revoke EL02000015-1 1",
        "findings",
        "keys create --role reader",
        "keys list",
        "keys revoke 1",
        "refused",
        "users create awa --role reader --password-stdin",
        "users disable awa",
        "users list",
        "users passwd awa --password-stdin",
    )
} | {
    f"nats init {OWN}/keys": (2, "not root's"),
    f"nats box {OWN}/keys EL02000015-1 --to {OWN}/box.creds": (2, "not root's"),
    f"nats relay {OWN}/keys --to {OWN}/relay.creds": (2, "not root's"),
    f"nats issuer {OWN}/keys --to {OWN}/issuer.json": (2, "not root's"),
    f"nats reader {OWN}/keys --to {OWN}/reader.creds": (2, "not root's"),
    f"nats revoke {OWN}/keys EL02000015-1": (2, "not root's"),
}
TYPE = """
import json, os, runpy, sys
sys.path.insert(0, "/usr/lib/mcfd-hq")
import headquarters.cli, headquarters.store.store
found = []
for command in json.loads(sys.argv[1]):
    (typed, keyboard), (said, out) = os.pipe(), os.pipe()
    os.write(keyboard, b"un mot de passe\\n")
    child = os.fork()
    if not child:
        os.dup2(typed, 0), os.dup2(os.open("/dev/null", os.O_WRONLY), 1), os.dup2(out, 2), os.close(keyboard)
        sys.argv = ["mcfd-hq", *command.split()]
        sys.exit(runpy.run_path("/usr/bin/mcfd-hq", run_name="__main__"))
    os.close(typed), os.close(keyboard), os.close(out)
    text = open(said, encoding="utf-8").read()
    found.append((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text))
print(json.dumps(found))
"""
"""The command once for each line, with everything imported once for all: its own file, in the interpreter that it names itself."""
POST = """
import json, sys, time, urllib.error, urllib.request
request = urllib.request.Request("http://127.0.0.1:8490/closures", sys.argv[2].encode(), json.loads(sys.argv[1]))
deadline, answer = time.monotonic() + 60, None
while not answer:
    try:
        answer = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    except OSError:  # nobody listens yet
        assert time.monotonic() < deadline
        time.sleep(0.05)
print(answer.status)
print(answer.read().decode())
"""


@pytest.fixture(scope="module")
def root():
    return unpacked(built_headquarters())


def test_it_is_small_enough():
    """Twelve megabytes at most, with the libraries of four Pythons."""
    assert built_headquarters().stat().st_size <= MAX_BYTES


def run(root, code, *arguments):
    code = f"import sys; sys.path.insert(0, {str(root / 'usr/lib/mcfd-hq')!r}); {code}"
    command = [PYTHON, "-IS", "-X", f"pycache_prefix={root}-byte-code", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_there(root):
    """Each of ours is imported from the package, and PostgreSQL's driver in its compiled form; the daemon is not in it."""
    lib = root / "usr/lib/mcfd-hq"
    files = [path.relative_to(lib) for name in ("common", "headquarters") for path in (lib / name).rglob("*.py")]
    names = [".".join(file.with_suffix("").parts) for file in files if "migrations" not in file.parts]
    imported = [name for name in names if not name.endswith(("__main__", "demo"))]
    assert len(imported) > 50
    code = f"import importlib; [importlib.import_module(name) for name in {imported!r}]; import psycopg; print(psycopg.pq.__impl__)"
    assert run(root, code).strip() == "binary"
    assert not (lib / "daemon").exists()


def test_its_command_works(root, tmp_path):
    """From an empty database to a key, with its own migrations; the example of the configuration lies where it is looked for."""
    file = tmp_path / "hq.toml"
    file.write_text(f'[storage]\nurl = "sqlite:///{tmp_path}/hq.sqlite3"\n')
    code = "from headquarters.cli import main; main()"
    assert run(root, code, "keys", "create", "--role", "reader", "--config", str(file)).startswith("hq_")
    assert (root / "etc/mcfd-hq/hq.toml.example").read_bytes() == (TREE / "config/hq.toml").read_bytes()
    assert (root / "usr/lib/systemd/system/mcfd-hq.service.d/10-job.conf").exists()


@pytest.fixture(scope="module")
def booted():
    need_debian()
    with debian(TRIXIE, postgresql(TRIXIE)) as tree:
        tree.boot()
        yield tree


@pytest.fixture
def debian_with_postgresql(booted):
    """With the package in it, also after the test that purges it."""
    if not booted.path(LIB).exists():
        booted.install(uncompressed(built_headquarters()))
    return booted


def test_installed_beside_debians_postgresql(debian_with_postgresql):
    """As docs/headquarters.md says: byte code at once, a hardened unit that takes a closure and knows it after a SIGKILL."""
    tree, box = debian_with_postgresql, PaperBox()
    modules, compiled = (tree.run("find", LIB, "-name", kind).stdout.split() for kind in ("*.py", "*.pyc"))
    assert len(compiled) == len(modules) > 1000  # -B of the command: none is written later
    tree.run("rm", "-r", f"{LIB}/headquarters/__pycache__")
    tree.run("/usr/share/python3/runtime.d/mcfd-hq.rtupdate", "rtupdate", "python3.11", "python3")
    assert sorted(tree.run("find", LIB, "-name", "*.pyc").stdout.split()) == sorted(compiled)
    # There is no configuration yet.
    assert tree.run("systemctl", "is-active", UNIT, check=False).stdout.strip() == "inactive"
    tree.run("runuser", "-u", "postgres", "--", "createuser", "mcfd-hq")
    tree.run("runuser", "-u", "postgres", "--", "createdb", "--owner", "mcfd-hq", "mcfd-hq")
    [url] = re.findall(r'`(url = "postgresql://[^`]*)`', (TREE / "docs/headquarters.md").read_text())
    tree.path("/etc/mcfd-hq/hq.toml").write_text(f"[storage]\n{url}\n")
    tree.run("systemctl", "start", UNIT)
    tree.run("mcfd-hq", "boxes", "add", box.nim, "--public-key", box.key.public)
    tree.run("mcfd-hq", "nats", "init", "/root/nats")  # as docs/upstream.md says: root's alone
    assert tree.run("stat", "-c", "%U %a", "/root/nats/operator-keys.json").stdout.split() == ["root", "600"]
    assert post(tree, box) == (200, box.closures[0].report_id)
    main_process = ("systemctl", "show", "-P", "MainPID", UNIT)
    [killed] = tree.run(*main_process).stdout.split()
    tree.run("kill", "-KILL", killed)
    wait_for(lambda: tree.run(*main_process).stdout.strip() not in ("0", killed), "it is started again", 60)
    wait_for(lambda: post(tree, box)[0] == 409, "it knows the closure", 60)
    rows = tree.run("runuser", "-u", "postgres", "--", "psql", "-Atc", "SELECT nim, z FROM closure", "mcfd-hq").stdout
    assert rows.split() == [f"{box.nim}|1"]
    score = tree.run("systemd-analyze", "security", "--no-pager", UNIT).stdout
    assert float(re.search(r"Overall exposure level for .*: ([0-9.]+)", score)[1]) <= MAX_EXPOSED
    tree.run("systemctl", "stop", UNIT)
    assert tree.run("systemctl", "show", "-P", "Result", UNIT).stdout.strip() == "success"


def test_what_root_types_follows_no_link(debian_with_postgresql):
    """With links of the service's user where database, copy and keys would be: nothing outside its folder is touched."""
    tree = debian_with_postgresql
    tree.path("/etc/mcfd-hq/trap.toml").write_text(
        f'[storage]\nurl = "sqlite:///{OWN}/trap.sqlite3"\nregister_copy = "{OWN}/trap.json"\n'
    )
    tree.run("runuser", "-u", "mcfd-hq", "--", "sh", "-c", PLANT, "sh", OWN)
    seen = ("find", "/etc", "/root", "/usr/bin", "/usr/lib/mcfd-hq", "-printf", "%p %U %m %T@ %s\\n")
    before = tree.run(*seen).stdout
    interpreter = tree.path("/usr/bin/mcfd-hq").read_text().partition("\n")[0].removeprefix("#!").split()
    done = json.loads(tree.run(*interpreter, "-c", TYPE, json.dumps(list(TYPED))).stdout)
    for (command, (code, text)), (ended, result) in zip(TYPED.items(), done, strict=True):
        assert (ended, text in result) == (code, True), (command, result)
    assert tree.run(*seen).stdout == before
    assert {path_of(cli, tuple(command.split())) for command in TYPED} == set(paths(cli)) - {("run",)}


def test_a_purge_leaves_nothing_of_the_program(debian_with_postgresql):
    """Byte code neither, which dpkg does not know of; the closures stay."""
    tree = debian_with_postgresql
    output = tree.run("dpkg", "--purge", "mcfd-hq")
    assert "not empty" not in output.stdout + output.stderr
    assert not any(tree.path(place).exists() for place in (LIB, "/usr/share/mcfd-hq", "/etc/mcfd-hq"))
    assert tree.path(OWN).is_dir()


def post(tree, box):
    """The box's first closure, from inside, once somebody listens: status and the receipt's id."""
    headers, body = box.sent(box.closures[0] if box.closures else box.close())
    done = tree.run("python3", "-c", POST, json.dumps(headers), body.decode())
    status, _, answer = done.stdout.partition("\n")
    return int(status), json.loads(answer).get("id")
