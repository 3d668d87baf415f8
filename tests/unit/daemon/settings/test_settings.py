import os
from pathlib import Path

import pytest
from settings_files import MACHINE, SECOND, UPSTREAM, refusal, write

from common.files import read_secret
from daemon.settings import SettingsError, check_files, load
from daemon.settings.source import find


def test_the_example_of_the_interfaces_page(tmp_path):
    """The TOML that scripts rely on is read as it stands, whole numbers where a number of seconds may be one."""
    settings = load(
        write(
            tmp_path,
            """
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
""",
        ),
        {},
    )
    assert settings.server.port == 8480
    assert settings.reports.aggregation_delay == 2.0
    assert str(settings.reports.zone) == "UTC"
    assert settings.machine[0].nim == "EL02000015-1"
    assert settings.upstream is not None
    assert settings.upstream.secret_file == Path("/etc/mcfd/credentials/upstream.secret")
    assert settings.upstream.box == ""
    assert settings.file == tmp_path / "mcfd.toml"


def test_a_machine_alone_is_a_configuration(tmp_path):
    """NIM and port are all that must be said; the rest has the defaults of the interfaces page."""
    settings = load(write(tmp_path, MACHINE), {})
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8480)
    assert settings.upstream is None
    assert settings.sandbox.enabled
    assert settings.storage.path == Path("/var/lib/mcfd/mcfd.sqlite3")
    assert settings.payment_labels()["B"] == "Chèque"


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
    assert settings.upstream is not None
    assert settings.upstream.secret_file == tmp_path / "s"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[server]\nprot = 1\n" + MACHINE, "server.prot: unknown key (did you mean port?)"),
        ("[servre]\nport = 1\n" + MACHINE, "servre: unknown section (did you mean server?)"),
        ('file = "x"\n' + MACHINE, "file: unknown section"),
        ('[server]\nport = "8480"\n' + MACHINE, 'server.port: "8480" is not allowed: it must be a whole number'),
        (
            "[server]\nport = true\n" + MACHINE,
            "server.port: true is not allowed: it must be a whole number from 0 to 65535",
        ),
        (
            "[server]\nport = 70000\n" + MACHINE,
            "server.port: 70000 is not allowed: it must be a whole number from 0 to",
        ),
        ("[reports]\naggregation_delay = nan\n" + MACHINE, "reports.aggregation_delay: null is not allowed"),
        ('[server]\nlanguage = "de"\n' + MACHINE, 'server.language: "de" is not allowed: it must be en or fr'),
        ("server = 3\n" + MACHINE, "server: must be a section […]"),
        ('[machine]\nnim = "EL02000015-1"\n', "machine: must be sections [[…]]"),
        ('[[machine]]\nport = "/dev/x"\n', "machine[0].nim: is missing"),
        (MACHINE + '[[machine]]\nnim = "XX"\nport = "/dev/x"\n', 'machine[1].nim: "XX" is not a NIM'),
        (MACHINE.replace("-1", "-1\\n"), "machine[0].nim: "),
        (MACHINE + 'operator_name = "a\\u0007b"\n', "machine[0].operator_name: "),
        (
            MACHINE + SECOND.replace("16-1", "15-2", 1),
            'machine[1].nim: "EL02000015-2" is the same as machine[0].nim',
        ),
        (MACHINE + SECOND.replace("mcf-EL02000016", "../dev/mcf-EL02000015"), "machine[1].port: "),
        ("", "machine: no [[machine]] section"),
        (
            '[reports]\ntimezone = "Africa/Ouaga"\n' + MACHINE,
            'reports.timezone: "Africa/Ouaga" is not a known time zone',
        ),
        ('[reports]\ntimezone = "../../etc/passwd"\n' + MACHINE, "reports.timezone: "),
        (
            '[reports.payment_labels]\nZ = "Troc"\n' + MACHINE,
            'reports.payment_labels.Z: "Z" is not a method of payment',
        ),
        ("[reports.payment_labels]\nE = 3\n" + MACHINE, "reports.payment_labels[...]: "),
        ('[server]\nhost = "0.0.0.0"\n' + MACHINE, 'server.host: "0.0.0.0" can be reached from the network'),
        *(
            (f'[server]\nallow_plain_lan = true\nhost = "{host}"\n' + MACHINE, f'server.host: "{host}" is neither')
            for host in ("0.0.0.0 ssl", "box..lan", "x" * 64, "bo\u00eete.lan")
        ),
        ('[server]\nhost = "box.lan"\n' + MACHINE, 'server.host: "box.lan" can be reached from the network'),
        ('[server]\ntls_cert = "c"\n' + MACHINE, "server.tls_cert: goes with tls_key, which is missing"),
        ('[server]\ntls_key = "c"\n' + MACHINE, "server.tls_key: goes with tls_cert, which is missing"),
        (
            '[server]\ntls = "internal"\ntls_cert = "c"\ntls_key = "k"\n' + MACHINE,
            "server.tls: excludes tls_cert: one or the other",
        ),
        (
            '[server]\ntls_folder = "t"\n' + MACHINE,
            'server.tls_folder: means something only with tls = "internal"',
        ),
        *(
            (f"[server]\nallowed_origins = [{config}]\n{MACHINE}", f"server.allowed_origins: {fault}")
            for config, fault in (
                ('"*"', '"*" is not an origin as browsers write it, such as "https://till.example"'),
                ('"https://ok.example", "null"', '"null" is not an origin as browsers write it, such as '),
                ('"till.example"', '"till.example" is not an origin as browsers write it, such as '),
                ('"ftp://till.example"', '"ftp://till.example" is not an origin as browsers write it, such as '),
                ('"https://*.example"', '"https://*.example" is not an origin as browsers write it, such as '),
                ('"https://é.example"', '"https://é.example" is not an origin as browsers write it, such as '),
                ('"http://[::1"', '"http://[::1" is not an origin as browsers write it, such as '),
                ('"http://a:0"', '"http://a:0" is not an origin as browsers write it, such as '),
                ('"https://Till.example/"', '"https://Till.example/" is not an origin as browsers write it, such as '),
                ('"https://till.example:443"', '"https://till.example:443" is not an origin as browsers write it, '),
                ('"http://u@till.example/x"', '"http://u@till.example/x" is not an origin as browsers write it, '),
            )
        ),
        ("[server]\nallowed_origins = [3]\n" + MACHINE, "server.allowed_origins[0]: 3 is not allowed: it must be "),
        ('[server]\nallowed_origins = [""]\n' + MACHINE, 'server.allowed_origins[0]: "" is not allowed: it must be '),
        ("[upstream]\n" + MACHINE, "upstream.kind: is missing"),
        (
            MACHINE + UPSTREAM.replace('secret_file = "s"\n', ""),
            "upstream.secret_file: secret_file or key_file is needed",
        ),
        (MACHINE + UPSTREAM.replace("https://hq", "ftp://hq"), 'upstream.url: "ftp://hq.example/z" is not an address'),
        (
            MACHINE + UPSTREAM.replace("https://hq", "http://hq"),
            'upstream.url: "http://hq.example/z" would send in clear',
        ),
        (
            MACHINE + UPSTREAM + 'credentials_file = "c"\n',
            'upstream.credentials_file: means something only with kind = "nats"',
        ),
        (MACHINE + UPSTREAM.replace('"https"', '"nats"'), "upstream.url: "),
        (
            MACHINE
            + UPSTREAM.replace('"https"', '"nats"').replace("https:", "nats:").replace('secret_file = "s"\n', ""),
            "upstream.credentials_file: credentials_file or key_file is needed",
        ),
        (MACHINE + UPSTREAM + 'subject_prefix = "mcf.>"\n', "upstream.subject_prefix: "),
        (MACHINE + '[[webhook]]\nurl = "http://x.example"\nsecret_file = "s"\n', "webhook[0].url: "),
        (MACHINE + '[[webhook]]\nurl = "https://x"\nsecret_file = "s"\nevents = ["z"]\n', "webhook[0].events[0]: "),
        (MACHINE + 2 * '[[webhook]]\nurl = "https://x"\nsecret_file = "s"\n', "webhook[1].url: "),
        (
            MACHINE + "".join(f'[[webhook]]\nurl = "https://x/{n}"\nsecret_file = "s"\n' for n in (1, 2)),
            'webhook[1].name: "x" is the same as webhook[0].name',
        ),
        (MACHINE + '[[webhook]]\nurl = "https://x"\nsecret_file = "s"\nname = "upstream"\n', "webhook[0].name: "),
        (MACHINE + '[[webhook]]\nurl = "https://x"\nsecret_file = "s"\nname = "a b"\n', "webhook[0].name: "),
        ("[server\n", "is not TOML: "),
    ],
)
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


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.5", "::1", "localhost"])
def test_loopback_needs_nothing(tmp_path, host):
    """An address of loopback may be listened on without TLS."""
    assert load(write(tmp_path, f'[server]\nhost = "{host}"\n' + MACHINE), {}).server.host == host


@pytest.mark.parametrize("more", ["allow_plain_lan = true", 'tls = "internal"', 'tls_cert = "c"\ntls_key = "k"'])
def test_the_network_needs_tls_or_a_word(tmp_path, more):
    """Beyond loopback, TLS or an explicit `allow_plain_lan` lets the daemon start."""
    assert load(write(tmp_path, f'[server]\nhost = "0.0.0.0"\n{more}\n' + MACHINE), {}).server.host == "0.0.0.0"  # noqa: S104  the case under test


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
    assert settings.upstream is not None
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


@pytest.mark.parametrize("make", [lambda _: None, Path.mkdir, lambda path: path.write_bytes(b"\xff=1")])
def test_a_file_that_cannot_be_read(tmp_path, make):
    """A missing file, a directory and a file that is not UTF-8 are one line each."""
    file = tmp_path / "mcfd.toml"
    make(file)
    with pytest.raises(SettingsError, match=r"mcfd.toml: (cannot be read|is not TOML): .+"):
        load(file, {})


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


def test_https_needs_the_proxy(tmp_path):
    """`proxy = "never"` goes with plain HTTP alone: the start is refused, and says which key."""
    text = f'[server]\nproxy = "never"\ntls = "internal"\n{MACHINE}'
    assert refusal(tmp_path, text).startswith("server.proxy: ")
