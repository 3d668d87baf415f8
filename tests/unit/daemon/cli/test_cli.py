import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.cli.command import Command

from daemon.cli import COMMANDS, root
from daemon.cli.commands import version

EXAMPLES = """
import shlex
import click
from daemon.cli import root

def walk(command, context):
    yield from (command.epilog or "").splitlines()
    for name in getattr(command, "list_commands", lambda _: [])(context):
        yield from walk(command.get_command(context, name), context)

for line in walk(root, click.Context(root)):
    words = shlex.split(line.partition("mcfd ")[2].partition(" > ")[0].partition(" < ")[0].rstrip(")"))
    command, context = root, click.Context(root)
    while words and isinstance(command, click.Group):
        _, command, words = command.resolve_command(context, words)
    options = command.make_parser(click.Context(command)).parse_args(words)[0]
    print(*(f"{line.strip()}: {each.name}" for each in command.params if each.required and not options.get(each.name)))
"""
HEAVY = (
    *("litestar", "uvicorn", "h11", "httptools", "httpx", "nats", "cryptography", "serial", "prometheus_client"),
    *("segno", "structlog"),
)
LOOK = f"""
import sys
from daemon.cli import main
sys.argv = ["mcfd", *sys.argv[1:]]
main()
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
MCFD = str(Path(sys.executable).with_name("mcfd"))


@pytest.fixture
def mcfd(tmp_path):
    return Command(tmp_path)


def python(mcfd: Command, program: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=mcfd.environ(**env))


def test_a_command_starts_without_the_heavy_half_of_the_house(mcfd):
    """`mcfd keys list` imports no web server, no HTTP client, no cryptography, no serial port, no log."""
    mcfd.ok("keys", "create", "--nim", "EL02000015-1")
    assert python(mcfd, LOOK, "keys", "list").stderr == "[]\n"


def test_a_group_without_a_command_shows_its_commands(mcfd):
    """On lines of their own, as `--help` does, and it is wrong use."""
    done = mcfd.run("keys")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == mcfd.run("keys", "--help").stdout


def test_the_examples_of_a_command_have_what_it_requires(mcfd):
    """Each example of `--help` names a command that there is, with its options and arguments."""
    assert python(mcfd, EXAMPLES).stdout.split() == []


def test_wrong_use_is_2(mcfd):
    """What does not exist ends with 2 and a word on its use; so does a number beyond what SQLite can look for."""
    for arguments in (["nonsense"], ["keys", "list", "--nonsense"], ["keys", "revoke"], ["keys", "revoke", "x"], []):
        done = mcfd.run(*arguments)
        assert done.returncode == 2, arguments
        assert "Usage: mcfd" in done.stderr + done.stdout
    for words in ("keys revoke", "upstream replay --from"):
        done = mcfd.run(*words.split(), "9" * 30)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith("is not in the range 1<=x<=999999999.\n")


def test_a_wrong_configuration_is_2(mcfd):
    """Each command that reads the configuration stops with one line that names file, key and reason."""
    mcfd.config.write_text("[server]\nprot = 1\n")
    for arguments in (["run"], ["keys", "list"], ["verify"], ["machine", "list"], ["upstream", "status"]):
        assert mcfd.refused(2, *arguments) == f"{mcfd.config}: server.prot: unknown key (did you mean port?)"
    mcfd.config.unlink()
    assert mcfd.refused(2, "verify") == f"{mcfd.config}: cannot be read: there is no such file"


def test_without_a_ledger_it_is_3(mcfd):
    """Commands that read the ledger make none: they say that there is none yet."""
    for arguments in (["keys", "list"], ["verify"], ["upstream", "status"], ["machine", "settle"], ["backup", "x"]):
        assert mcfd.refused(3, *arguments).startswith(f"no ledger yet at {mcfd.ledger}")
    assert not mcfd.ledger.exists()


def test_a_file_that_is_no_ledger_is_3(mcfd):
    """Another program's file, or a damaged one, is left as it is."""
    mcfd.ledger.write_bytes(b"not a database at all, but long enough to be taken for one" * 100)
    before = mcfd.ledger.read_bytes()
    assert str(mcfd.ledger) in mcfd.refused(3, "keys", "list")
    assert mcfd.ledger.read_bytes() == before


def test_versions(mcfd):
    """`--version` for people, `version --json` for scripts."""
    versions = mcfd.json("version")
    assert mcfd.ok("--version") == f"mcfd {versions['mcfd']}\n"
    assert f"python {versions['python']}" in mcfd.ok("version")


def test_an_upgrade_needs_a_repository(tmp_path, monkeypatch):
    """A package that was installed from a file has none: it is named, instead of warnings of apt."""
    monkeypatch.setattr(version, "SCRIPT", Path(sys.executable))
    monkeypatch.setattr(version, "SOURCES", tmp_path / "mcfd.sources")
    done = CliRunner().invoke(version.upgrade, [])
    assert done.exit_code == 1
    assert str(version.SOURCES) in done.stderr


def test_config_check(mcfd):
    """What a start would refuse is reported without starting: also a secret that cannot be read, or is none."""
    assert mcfd.json("config", "check") == {"ok": True, "file": str(mcfd.config), "machines": ["EL02000015-1"]}
    with mcfd.config.open("a") as file:
        file.write('[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "s"\n')
    secret = mcfd.folder / "s"
    assert mcfd.refused(2, "config", "check").endswith(
        f"upstream.secret_file: {secret} cannot be read: there is no such file"
    )
    secret.write_text("whsec_%%%\n")
    refused = mcfd.run("config", "check", "--json")
    assert refused.returncode == 2
    assert '"key": "upstream.secret_file"' in refused.stdout
    assert "%%%" not in refused.stdout
    secret.write_text("whsec_c2VjcmV0\n")
    assert "a shared secret has 24 to 64 bytes, this one 6" in mcfd.refused(2, "config", "check")
    in_french = mcfd.run("config", "check", env={"LC_ALL": "fr_FR.UTF-8"}).stderr
    assert "un secret partagé a 24 à 64 octets, celui-ci 6" in in_french
    secret.write_text("whsec_" + "A" * 32 + "\n")
    assert mcfd.ok("config", "check") == f"{mcfd.config}: all is well (EL02000015-1)\n"


@pytest.mark.parametrize(
    ("section", "key"),
    [
        (
            '[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "good"\ntls_ca = "bad"\n',
            "upstream.tls_ca",
        ),
        (
            '[upstream]\nkind = "nats"\nurl = "tls://hq.example"\ncredentials_file = "bad"\n',
            "upstream.credentials_file",
        ),
        ('[[webhook]]\nurl = "https://a.example"\nsecret_file = "bad"\n', "webhook[0].secret_file"),
        ('[[webhook]]\nurl = "https://a.example"\nsecret_file = "good"\ntls_ca = "bad"\n', "webhook[0].tls_ca"),
        ('[server]\ntls_cert = "bad"\ntls_key = "good"\n', "server.tls_cert"),
        ('[backup]\nrecipients = ["age1x"]\n', "backup.recipients"),
        ('[backup]\npassphrase_file = "missing"\n', "backup.passphrase_file"),
        ('[reports.payment_labels]\nE = "a\\u001bb"\n', "reports.payment_labels"),
    ],
)
def test_config_check_looks_into_the_files(mcfd, section, key):
    """A file that is none of its kind (certificate, authority, credentials, secret, key of the backup) is one line with its key."""
    (mcfd.folder / "good").write_text("whsec_" + "A" * 32 + "\n")
    (mcfd.folder / "bad").write_text("x\n")
    with mcfd.config.open("a") as file:
        file.write(section)
    assert key in mcfd.refused(2, "config", "check")


def test_the_page_of_commands_names_them_all():
    """docs/commands.md has a line for every command there is; in French several of a group may stand in one."""
    docs = Path(__file__).parents[4] / "docs"
    page = (docs / "commands.md").read_text()
    french: list[str] = []
    for cell in re.findall(r"^\| (`mcfd [^|]*)", (docs / "commands.fr.md").read_text(), re.MULTILINE):
        for span in re.findall(r"`([^`]+)`", cell):
            french.append(span if span.startswith("mcfd ") else " ".join([*french[-1].split()[:2], span]))
    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        assert command is not None
        below = command.commands if isinstance(command, click.Group) else {"": command}
        for verb in below:
            line = f"mcfd {name} {verb}".rstrip()
            assert f"| `{line}" in page
            assert any(f"{each} ".startswith(f"{line} ") for each in french), line


@pytest.mark.parametrize(("streams", "code"), [("> /dev/full", 3), (">&-", 0), ("<&- >&- 2>&-", 0)])
def test_output_that_goes_nowhere_is_no_traceback(mcfd: Command, streams: str, code: int) -> None:
    """A disk without room for the output is one line and exit 3; a stream that is closed is a stream that nobody reads."""
    done = subprocess.run(
        ["sh", "-c", f'"$0" config doc {streams}', MCFD],
        env=mcfd.environ(), check=False, text=True, capture_output=True,
    )  # fmt: skip
    complaint = "mcfd: the output is incomplete: no space left\n" if code else ""
    assert (done.returncode, done.stderr) == (code, complaint)


def test_a_file_that_is_too_large_for_its_disk_says_so(mcfd: Command, tmp_path: Path) -> None:
    """A copy beyond 4 GB on a FAT stick: the limit is named, exit 3, no part of it stays."""
    file = tmp_path / "upstream.key"
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; "$0" upstream keygen "$1"', MCFD, file],
        env=mcfd.environ(), check=False, text=True, capture_output=True,
    )  # fmt: skip
    complaint = f"mcfd: {file} cannot be written: the file is larger than that disk allows (FAT: 4 GB)\n"
    assert (done.returncode, done.stderr) == (3, complaint)
    assert not file.exists()


def test_a_closed_stdin_is_no_terminal(mcfd: Command) -> None:
    """A command that would ask names its option, as it does for a script."""
    done = subprocess.run(
        ["sh", "-c", '"$0" users create awa --role seller <&-', MCFD],
        env=mcfd.environ(), check=False, text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--password-stdin" in done.stderr
    assert "Traceback" not in done.stderr
