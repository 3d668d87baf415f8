import os
from pathlib import Path

import pytest

from common.files import read_secret
from daemon.settings import SettingsError, check_files, load
from daemon.settings.source import find

pytestmark = pytest.mark.usefixtures("in_english")

PORT = "/dev/mcf-EL02000015"
MACHINE = f'[[machine]]\nnim = "EL02000015-1"\nport = "{PORT}"\n'
SECOND = '[[machine]]\nnim = "EL02000016-1"\nport = "/dev/mcf-EL02000016"\n'
UPSTREAM = '[upstream]\nkind = "https"\nurl = "https://hq.example/z"\nsecret_file = "s"\n'
WEBHOOK = '[[webhook]]\nurl = "https://x"\nsecret_file = "s"\n'


def spare(first="EL02000015-1", nim="EL02000099-1"):
    return f'[[machine]]\nnim = "{nim}"\nport = "/dev/{nim}"\nspare_for = "{first}"\n'


def write(folder, text):
    file = folder / "mcfd.toml"
    file.write_text(text)
    return file


def refusal(folder, text, environ=None):
    file = write(folder, text)
    with pytest.raises(SettingsError) as caught:
        load(file, environ or {})
    result = str(caught.value)
    assert "\n" not in result
    return result.removeprefix(f"{file}: ")


EXAMPLE = """
[server]
host = "127.0.0.1"
port = 8480
[storage]
path = "/var/lib/mcfd/mcfd.sqlite3"
[reports]
aggregation_delay = 2
timezone = "Africa/Ouagadougou"
[[machine]]
nim = "EL02000015-1"
port = "/dev/mcf-EL02000015"
baudrate = 115200
isf = "1"
operator_id = "1"
operator_name = "Caisse 1"
[upstream]
kind = "https"
url = "https://hq.example/closures"
secret_file = "/etc/mcfd/credentials/upstream.secret"
retry_max = 300.0
"""


def test_the_example_of_the_interfaces_page(tmp_path):
    """The TOML that scripts rely on is read as it stands; NIM and port are all that must be said."""
    settings = load(write(tmp_path, EXAMPLE), {})
    assert (settings.reports.aggregation_delay, str(settings.reports.zone)) == (2.0, "UTC")
    assert (settings.machine[0].nim, settings.file) == ("EL02000015-1", tmp_path / "mcfd.toml")
    assert settings.upstream.secret_file == Path("/etc/mcfd/credentials/upstream.secret")
    assert settings.upstream.box == ""
    alone = load(write(tmp_path, MACHINE), {})
    assert (alone.server, alone.storage) == (settings.server, settings.storage)
    assert (alone.server.host, alone.server.port) == ("127.0.0.1", 8480)
    assert alone.storage.path == Path("/var/lib/mcfd/mcfd.sqlite3")
    assert (alone.upstream, alone.sandbox.enabled, alone.payment_labels()["B"]) == (None, True, "Chèque")


def test_labels_of_payments(tmp_path):
    """A label given replaces that letter's; the others follow `server.language`."""
    text = '[server]\nlanguage = "en"\n[reports]\npayment_labels = { B = "Bon d\'achat" }\n' + MACHINE
    labels = load(write(tmp_path, text), {}).payment_labels()
    assert labels == {
        "E": "Cash",
        "V": "Bank transfer",
        "C": "Bank card",
        "M": "Mobile money",
        "B": "Bon d'achat",
        "A": "Other",
    }


def test_relative_paths_start_at_the_file(tmp_path, monkeypatch):
    """The same file means the same ledger, line and secrets from whatever directory a command is typed in."""
    monkeypatch.chdir("/")
    text = '[storage]\npath = "a.sqlite3"\n' + MACHINE.replace("/dev/mcf-EL02000015", "machine") + UPSTREAM
    settings = load(write(tmp_path, text), {})
    assert settings.storage.path == tmp_path / "a.sqlite3"
    assert settings.machine[0].port.path == tmp_path / "machine"
    assert settings.upstream.secret_file == tmp_path / "s"


ORIGIN = " is not an origin as browsers write it, "
NO_ADDRESS = "is not an address"
IN_A_SECTION = [
    ("server", "prot = 1", "prot: unknown key (did you mean port?)"),
    ("server", 'port = "8480"', 'port: "8480" is not allowed: it must be a whole number'),
    ("server", "port = true", "port: true is not allowed: it must be a whole number from 0 to 65535"),
    ("server", "port = 70000", "port: 70000 is not allowed: it must be a whole number from 0 to"),
    ("server", 'language = "de"', 'language: "de" is not allowed: it must be en or fr'),
    *(
        ("server", f'host = "{host}"', f'host: "{host}" can be reached from the network')
        for host in ("0.0.0.0", "box.lan")  # noqa: S104  the case under test
    ),
    *(
        ("server", f'allow_plain_lan = true\nhost = "{host}"', f'host: "{host}" is neither')
        for host in ("0.0.0.0 ssl", "box..lan", "x" * 64, "bo\u00eete.lan", "http://192.168.1.20", "box.lan:8480")
    ),
    *(
        ("server", f'public_url = "{url}"', "public_url: ")
        for url in ("http://[::1", "https://x:99999/", "https://u:p@x")
    ),
    ("server", 'tls_cert = "c"', "tls_cert: goes with tls_key, which is missing"),
    ("server", 'tls_key = "c"', "tls_key: goes with tls_cert, which is missing"),
    ("server", 'tls = "internal"\ntls_cert = "c"\ntls_key = "k"', "tls: excludes tls_cert: one or the other"),
    ("server", 'tls_folder = "t"', 'tls_folder: means something only with tls = "internal"'),
    ("server", 'proxy = "never"\ntls = "internal"', "proxy: "),  # HTTPS needs it
    ("server", 'allowed_origins = ["*"]', f'allowed_origins: "*"{ORIGIN}such as "https://till.example"'),
    ("server", 'allowed_origins = ["https://ok.example", "null"]', f'allowed_origins: "null"{ORIGIN}'),
    *(
        ("server", f'allowed_origins = ["{origin}"]', f'allowed_origins: "{origin}"{ORIGIN}')
        for origin in (
            *("till.example", "ftp://till.example", "https://*.example", "https://é.example", "http://[::1"),
            *("http://a:0", "https://Till.example/", "https://till.example:443", "http://u@till.example/x"),
        )
    ),
    ("server", "allowed_origins = [3]", "allowed_origins[0]: 3 is not allowed: it must be "),
    ("server", 'allowed_origins = [""]', 'allowed_origins[0]: "" is not allowed: it must be '),
    ("reports", "aggregation_delay = nan", "aggregation_delay: null is not allowed"),
    ("storage", f"reserve_mb = {10**20}", f"reserve_mb: {10**20} is not allowed: it must be a whole number from 1 to "),
    (
        "numbering",
        'enabled = true\npattern = "BOUTIQUE-DU-MARCHE/{type}-{nim}-{year}-"',
        "pattern: gives numbers as BOUTIQUE-DU-MARCHE/FV-EL02000015-",
    ),
    ("stamp_duty", f"steps.{'9' * 5000} = 1", f"steps.{'9' * 5000}: "),
    ("storage", "max_size_mb = 32", "max_size_mb: has to be above reserve_mb (32)"),
    ("reports", 'timezone = "Africa/Ouaga"', 'timezone: "Africa/Ouaga" is not a known time zone'),
    ("reports", 'timezone = "../../etc/passwd"', "timezone: "),
    ("reports", 'payment_labels.Z = "Troc"', 'payment_labels.Z: "Z" is not a method of payment'),
    ("reports", "payment_labels.E = 3", "payment_labels[...]: "),
    ("printer", 'address = "/dev/l\\u0000"', "address: "),
    ("upstream", "", "kind: is missing"),
]
BAD_LINES = ("a\\u0007b", "a\\nb", "a\\u2028b", "   ", "", "x" * 65)
"""No line that shows something."""
WITH_A_MACHINE = [
    ('[[machine]]\nnim = "XX"\nport = "/dev/x"\n', 'machine[1].nim: "XX" is not a NIM'),
    *(
        (f'{key} = "{text}"\n', f"machine[0].{key}: ")
        for key in ("isf", "operator_id", "operator_name")
        for text in BAD_LINES
    ),
    (SECOND.replace("16-1", "15-2", 1), 'machine[1].nim: "EL02000015-2" is the same as machine[0].nim'),
    (SECOND.replace("mcf-EL02000016", "../dev/mcf-EL02000015"), "machine[1].port: "),
    ("habits = 1\n", "machine[0].habits: must be a section […]"),
    *(
        (f"[machine.habits]\n{line}\n", f"machine[0].habits.{fault}")
        for line, fault in (
            ("code_pag = 1", "code_pag: unknown key (did you mean code_page?)"),
            ('code_page = "latin"', 'code_page: "latin" is not allowed: it must be cp1252 or utf-8'),
            ("name_bytes = 201", "name_bytes: 201 is not allowed: it must be a whole number from 0 to 200"),
        )
    ),
    (spare("EL02000099-2"), 'machine[1].spare_for: "EL02000099-2" is this machine itself'),
    (spare("EL02000077-1"), 'machine[1].spare_for: "EL02000077-1" is no machine of this configuration'),
    (spare("the other"), 'machine[1].spare_for: "the other" is not a NIM'),
    (spare() + spare(nim="EL02000098-1"), 'machine[2].spare_for: "EL02000015-1" has a spare already'),
    (spare() + spare("EL02000099-1", "EL02000098-1"), 'machine[2].spare_for: "EL02000099-1" is a spare itself'),
    (UPSTREAM.replace('secret_file = "s"\n', ""), "upstream.secret_file: secret_file or key_file is needed"),
    (UPSTREAM.replace("https://hq", "ftp://hq"), f'upstream.url: "ftp://hq.example/z" {NO_ADDRESS}'),
    (UPSTREAM.replace("https://hq", "http://hq"), 'upstream.url: "http://hq.example/z" would send in clear'),
    (f'{UPSTREAM}credentials_file = "c"\n', 'upstream.credentials_file: means something only with kind = "nats"'),
    (UPSTREAM.replace('"https"', '"nats"'), "upstream.url: "),
    (
        UPSTREAM.replace('"https"', '"nats"').replace("https:", "nats:").replace('secret_file = "s"\n', ""),
        "upstream.credentials_file: credentials_file or key_file is needed",
    ),
    (f'{UPSTREAM}subject_prefix = "mcf.>"\n', "upstream.subject_prefix: "),
    (f'{UPSTREAM}box = "a\\nb"\n', "upstream.box: "),
    (WEBHOOK.replace("https:", "http:"), "webhook[0].url: "),
    (f'{WEBHOOK}events = ["z"]\n', "webhook[0].events[0]: "),
    (2 * WEBHOOK, "webhook[1].url: "),
    (WEBHOOK + WEBHOOK.replace("//x", "//x/2"), 'webhook[1].name: "x" is the same as webhook[0].name'),
    *((f'{WEBHOOK}name = "{name}"\n', "webhook[0].name: ") for name in ("upstream", "a b")),
]
OF_A_FILE = [
    ("", "machine: no [[machine]] section"),
    ("[server\n", "is not TOML: "),
    (f"[servre]\nport = 1\n{MACHINE}", "servre: unknown section (did you mean server?)"),
    (f'file = "x"\n{MACHINE}', "file: unknown section"),
    (f"server = 3\n{MACHINE}", "server: must be a section […]"),
    ('[machine]\nnim = "EL02000015-1"\n', "machine: must be sections [[…]]"),
    ('[[machine]]\nport = "/dev/x"\n', "machine[0].nim: is missing"),
    (MACHINE.replace("-1", "-1\\n"), "machine[0].nim: "),
    *(
        (MACHINE.replace(PORT, port), f'machine[0].port: "{port}" {NO_ADDRESS} {port[: port.index(":")]}://host:port')
        for port in ("tcp://10.0.0.1", "tcp://10.0.0.1:99999", "rfc2217://10.0.0.1:4001?logging=debug")
    ),
    (MACHINE.replace(PORT, "http://10.0.0.1:4001"), f'machine[0].port: "http://10.0.0.1:4001" {NO_ADDRESS} tcp://'),
    (MACHINE.replace(PORT, "tcp://me:secret@10.0.0.1:4001"), "machine[0].port: must not carry a password"),
    (
        MACHINE.replace(PORT, "tcp://10.0.0.1:4001") + SECOND.replace("/dev/mcf-EL02000016", "rfc2217://10.0.0.1:4001"),
        'machine[1].port: "rfc2217://10.0.0.1:4001" is the same as machine[0].port',
    ),
    *((f"[{section}]\n{lines}\n{MACHINE}", f"{section}.{fault}") for section, lines, fault in IN_A_SECTION),
    *((MACHINE + more, fault) for more, fault in WITH_A_MACHINE),
]


@pytest.mark.parametrize(("text", "expected"), OF_A_FILE)
def test_what_is_wrong_is_named(tmp_path, text, expected):
    """Every fault is one line with the file, the key as it stands there, and why."""
    assert refusal(tmp_path, text).startswith(expected)


def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path):
    """A URL with a password would end up in logs: it is refused, and the refusal does not show it."""
    result = refusal(tmp_path, MACHINE + UPSTREAM.replace("https://hq", "https://awa:hunter2@hq"))
    assert result.startswith("upstream.url: must not carry a password")
    assert "hunter2" not in result
    result = refusal(tmp_path, MACHINE + UPSTREAM.replace("[upstream]", "[[upstream]]").replace("hq", "awa:hunter2@hq"))
    assert result == "upstream: must be a section […]"


def test_who_wants_which_events(tmp_path):
    """A webhook without a list of events wants them all; closures always go upstream."""
    hooks = '[[webhook]]\nurl = "https://a"\nsecret_file = "s"\nevents = ["cert.issued"]\n'
    hooks += '[[webhook]]\nurl = "https://x/y?z"\nsecret_file = "s"\nname = "b"\n'
    destinations = load(write(tmp_path, MACHINE + hooks), {}).destinations()
    assert destinations["upstream"] == {"closure.created"}
    assert destinations["a"] == {"cert.issued"}
    assert len(destinations["b"]) == 13


LAN = 'host = "0.0.0.0"\n'


@pytest.mark.parametrize(
    "lines",
    [
        *(f'host = "{host}"' for host in ("127.0.0.1", "127.0.0.5", "::1", "localhost")),
        *(LAN + more for more in ("allow_plain_lan = true", 'tls = "internal"', 'tls_cert = "c"\ntls_key = "k"')),
    ],
)
def test_loopback_needs_nothing_and_the_network_tls_or_a_word(tmp_path, lines):
    """Beyond loopback, TLS or an explicit `allow_plain_lan` lets the daemon start."""
    settings = load(write(tmp_path, f"[server]\n{lines}\n{MACHINE}"), {})
    assert f'host = "{settings.server.host}"' in lines


def test_a_machine_that_is_switched_off_does_not_hold_its_port(tmp_path):
    """Two machines may be written down for one port as long as only one of them is enabled."""
    text = MACHINE + "enabled = false\n" + SECOND.replace("EL02000016-1", "EL02000017-1").replace("16", "15")
    assert len(load(write(tmp_path, text), {}).machine) == 2


def test_the_environment_goes_first(tmp_path):
    """`MCFD_<SECTION>_<KEY>` overrides the file, by the key's own type, and makes a section that the file leaves out."""
    settings = load(
        write(tmp_path, "[server]\nport = 1\n" + MACHINE),
        {
            "MCFD_SERVER_PORT": "9000",
            "MCFD_SERVER_ALLOWED_HOSTS": "caisse.lan, mcf.lan",
            "MCFD_SANDBOX_ENABLED": "false",
            "MCFD_REPORTS_AGGREGATION_DELAY": "0.5",
            "MCFD_STORAGE_PATH": "/tmp/x.sqlite3",  # noqa: S108  never opened
            "MCFD_UPSTREAM_KIND": "nats",
            "MCFD_UPSTREAM_URL": "nats://a:4222,nats://b:4222",
            "MCFD_UPSTREAM_CREDENTIALS_FILE": "shop.creds",
            "MCFD_UPSTREAM_TLS_CA": "",
            "MCFD_CONFIG": "ignored",
            "MCFD_TEST_SEED": "1",
            "MCFD_API_KEY": "of some script",
            "HOME": "/",
        },
    )
    assert settings.server.port == 9000
    assert settings.server.allowed_hosts == ("caisse.lan", "mcf.lan")
    assert not settings.sandbox.enabled
    assert settings.reports.aggregation_delay == 0.5
    assert settings.storage.path.name == "x.sqlite3"
    assert settings.upstream.kind == "nats"
    assert settings.upstream.tls_ca is None


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("MCFD_SERVER_PORT=many", '"many" is not allowed: it must be a whole number from 0 to 65535'),
        ("MCFD_SERVER_PORT=", ""),
        ("MCFD_SERVER_PROT=1", "unknown key (did you mean MCFD_SERVER_PORT?)"),
        ("MCFD_STORE_PATH=/x", "unknown key (did you mean MCFD_STORAGE_PATH?)"),
        ("MCFD_SERVR_PORT=1", "unknown key (did you mean MCFD_SERVER_PORT?)"),
        ("MCFD_STORAGE_PATH=", ""),
        ("MCFD_MACHINE_NIM=x", "is set in the file, not by the environment"),
        ("MCFD_REPORTS_PAYMENT_LABELS=x", "is set in the file"),
        ("MCFD_SERVER_HOST=10.0.0.1", '"10.0.0.1" can be reached from the network'),
        ("MCFD_COMPANY_NAME=\udcc9picerie", "is not UTF-8"),
        ("MCFD_SANDBOX_ENABLED=perhaps", '"perhaps" is not allowed: it must be true or false'),
    ],
)
def test_a_wrong_variable_is_named_itself(tmp_path, assignment, expected):
    """A fault that came with the environment names the variable, not the file."""
    variable, _, value = assignment.partition("=")
    assert refusal(tmp_path, MACHINE, {variable: value}).startswith(f"{variable}: {expected}")


def test_the_message_is_french_unless_the_locale_is_english(tmp_path, monkeypatch):
    """A shop reads French; `LC_ALL` goes before `LANG`; a locale without a language is no English."""
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    for locale in ("fr_FR.UTF-8", "C.UTF-8"):
        monkeypatch.setenv("LC_ALL", locale)
        assert refusal(tmp_path, "").startswith("machine: aucune section")


def test_no_file_at_all(tmp_path, monkeypatch):
    """Without a file the line says where it was looked for; `./mcfd.toml` is the second place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("daemon.settings.source.SEARCH", (tmp_path / "etc.toml", Path("mcfd.toml")))
    with pytest.raises(SettingsError, match=r"no configuration: neither .*etc.toml nor mcfd.toml"):
        load(None, {})
    write(tmp_path, MACHINE)
    assert find() == Path("mcfd.toml")
    assert load(None, {}).file == tmp_path / "mcfd.toml"


def test_a_file_of_an_editor_that_marks_its_encoding(tmp_path):
    """Windows' Notepad puts a byte order mark first."""
    file = write(tmp_path, "\ufeff" + MACHINE)
    assert load(file, {}).machine[0].nim == "EL02000015-1"


@pytest.mark.parametrize("make", [lambda _: None, Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"\xff=1")])
def test_a_file_that_cannot_be_read(tmp_path, make):
    """A missing file, a directory, a pipe that nobody writes to and a file that is not UTF-8 are one line each."""
    file = tmp_path / "mcfd.toml"
    make(file)
    with pytest.raises(SettingsError, match=r"mcfd.toml: (cannot be read|is not TOML|is not UTF-8).+"):
        load(file, {})


def test_a_file_in_another_encoding_names_the_line(tmp_path):
    """As an editor of Windows writes a name with an accent: what to do, and no codec."""
    file = write(tmp_path, MACHINE)
    file.write_bytes(b'[company]\nname = "Caf\xe9"\n' + file.read_bytes())
    with pytest.raises(SettingsError) as caught:
        load(file, {})
    assert caught.value.reason == "is not UTF-8 (line 2): save it in that encoding"


def test_secrets_are_looked_at_before_a_start(tmp_path):
    """A secret that is missing or empty stops the start, and is not looked for by commands that do not need it."""
    settings = load(write(tmp_path, MACHINE + UPSTREAM), {})
    secret = tmp_path / "s"
    with pytest.raises(SettingsError, match=r"upstream.secret_file: .*/s cannot be read: there is no such file"):
        check_files(settings, {})
    secret.write_text(" \n")
    with pytest.raises(SettingsError, match=r"upstream.secret_file: .*/s is empty"):
        check_files(settings, {})
    secret.write_text("whsec_c2VjcmV0\n")
    check_files(settings, {})
    assert "c2VjcmV0" not in repr(settings)


def test_a_secret_that_systemd_did_not_hand_over(tmp_path):
    """Its folder is root's alone, so that the service is refused what is not there: it is missing, not in need of other rights."""
    settings = load(write(tmp_path, MACHINE + UPSTREAM.replace('"s"', '"credentials/s"')), {})
    with pytest.raises(
        SettingsError, match="/credentials/s cannot be read: it is missing, or newer than the last start"
    ):
        check_files(settings, {"CREDENTIALS_DIRECTORY": str(tmp_path)})


@pytest.mark.parametrize(
    ("section", "key"),
    [(UPSTREAM, "upstream.secret_file"), ('[server]\ntls_cert = "s"\ntls_key = "s"\n', "server.tls_cert")],
)
def test_a_pipe_where_a_secret_is_expected(tmp_path, section, key):
    """The start does not wait for somebody to write into it."""
    settings = load(write(tmp_path, MACHINE + section), {})
    os.mkfifo(tmp_path / "s")
    with pytest.raises(SettingsError, match=rf"{key}: .*/s cannot be read: it is a pipe, not a file"):
        check_files(settings, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_secret_of_somebody_else(tmp_path):
    """A secret that this user may not read stops the start with the reason."""
    secret = tmp_path / "s"
    secret.write_text("whsec_c2VjcmV0\n")
    secret.chmod(0)
    with pytest.raises(SettingsError, match="permission denied"):
        check_files(load(write(tmp_path, MACHINE + UPSTREAM), {}), {})


@pytest.mark.parametrize("name", ["upstream.secret", "credentials_upstream.secret"])
def test_a_systemd_credential_goes_before_the_file(tmp_path, name):
    """LoadCredential of the file or of its whole directory serves the same configuration without a change."""
    (tmp_path / name).write_text("whsec_Zm9v\n")
    path = Path("/nowhere/credentials/upstream.secret")
    assert read_secret(path, {"CREDENTIALS_DIRECTORY": str(tmp_path)}) == b"whsec_Zm9v"
    with pytest.raises(FileNotFoundError):
        read_secret(path, {})


def test_a_place_that_cannot_be_looked_at(monkeypatch):
    """Somebody else's folder is not taken for an empty one: the complaint is about the file in it."""
    unreachable = Path("x" * 300)
    monkeypatch.setattr("daemon.settings.source.SEARCH", (unreachable, Path("mcfd.toml")))
    with pytest.raises(SettingsError, match=r"^x+: cannot be read: "):
        load(None, {})


@pytest.mark.parametrize("port", ["tcp://192.168.1.50:4001", "rfc2217://device-server.local:4001", "tcp:10.0.0.1:4001"])
def test_a_machine_on_the_network(tmp_path, port):
    """An address of the network is kept as it was written; what has no `://` is a relative path."""
    expected = port if "://" in port else str(tmp_path / port)
    assert load(write(tmp_path, MACHINE.replace(PORT, port)), {}).machine[0].port == expected


def test_the_habits_of_a_machine(tmp_path):
    """A table behind the keys of its `[[machine]]`; what is left out suits what is known of machines."""
    habits = '[machine.habits]\ncode_page = "cp1252"\nreply_gap = 1\n'
    first, second = load(write(tmp_path, MACHINE + habits + SECOND), {}).machine
    assert (first.habits.code_page, first.habits.reply_gap, first.habits.walk_in) == ("cp1252", 1.0, "nothing")
    assert (second.habits.code_page, second.habits.close_total) == ("utf-8", "decimals")


def test_a_spare_and_its_machine_are_found_by_each_other(tmp_path):
    """With another activation counter too."""
    settings = load(write(tmp_path, MACHINE + spare("EL02000015")), {})
    first, other = settings.machine
    assert (settings.first_of(other), settings.spare_of(first)) == (first, other)
    assert (settings.first_of(first), settings.spare_of(other)) == (None, None)
