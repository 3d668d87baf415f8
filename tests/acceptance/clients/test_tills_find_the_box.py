"""Tills without an address find the box that announces itself. In a network namespace of its own: the question goes to every host of a network.

As a program (`python test_tills_find_the_box.py FOLDER LANGUAGE`) it is what runs in that network.
"""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.shop import NIM, Machine, Shop
from support.tools import cannot, need

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[3] / "docs" / "tills"
GROUP = "224.0.0.251"
QUESTION = b"\x05_mcfd\x04_tcp\x05local\0\0\x0c\0\x01"
ANSWER = (
    b"\0\0\x84\0\0\x01\0\x05\0\0\0\0\x05_mcfd\x04_tcp\x05local\0\0\x0c\0\x01\xc0\x0c\0\x0c\0\x01\0\0\0\n\0\x11\x0emcfd on caisse\xc0\x0c"
    b"\xc0.\0\x10\0\x01\0\0\0\n\0\x1e\x08path=/v1\x0eschema=/schema\x05tls=1\xc0.\0!\0\x01\0\0\0\n\0\x0f\0\0\0\0!3\x06caisse\xc0\x17"
    b"\xc0{\0\x1c\0\x01\0\0\0\n\0\x10\xfe\x80\0\0\0\0\0\0\xbc\xeb\xbb\xff\xfe\xc8F\xcb\xc0{\0\x01\0\x01\0\0\0\n\0\x04\n\t\0\x01"
)
"""Of avahi-daemon 0.8 to that question, for the service file of `daemon/app/status.py` with port 8499."""
TLS_HANDSHAKE = b"\x16"
IN_A_NETWORK = 'ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && exec "$@"'
TILLS = {
    "python": [sys.executable, "till.py"],
    "node": ["node", "till.mjs"],
    "php": ["php", "till.php"],
}


def in_a_network(*command: str) -> subprocess.CompletedProcess[str]:
    need("unshare", "ip")
    if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode:
        cannot("no network namespaces for this user")
    whole = ["unshare", "-rn", "sh", "-c", IN_A_NETWORK, "sh", *command]
    return subprocess.run(whole, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.parametrize("language", TILLS)
def test_a_till_without_an_address_finds_the_box(tmp_path: Path, language: str) -> None:
    """It asks as Avahi understands it, reads address and port of the answer, and sells over HTTPS, trusting the box's authority alone."""
    need(TILLS[language][0], "haproxy")
    done = in_a_network(sys.executable, __file__, str(tmp_path), language)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "certified FOUND-1" in done.stdout
    assert "closed Z 1" in done.stdout


def test_the_till_in_c_sharp_finds_the_box(tmp_path: Path) -> None:
    """As the others, as far as its certificate."""
    need("mono", "mcs")
    done = in_a_network(sys.executable, __file__, str(tmp_path), "csharp")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("language", TILLS)
def test_where_nobody_answers_it_is_the_fixed_address(language: str) -> None:
    """After three tries, also where there is no network at all."""
    need(TILLS[language][0])
    look = {
        "python": "import sys; sys.path.insert(0, '{docs}'); import till; print(till.BASE)",
        "node": "process.argv[2] = 'X'; globalThis.fetch = (url) => {{ console.log(url); process.exit(); }}; import('{docs}/till.mjs');",
        "php": "try {{ $argv[1] = 'X'; register_shutdown_function(fn() => print(BASE)); eval(str_replace(['<?php', 'const PATIENCE = 120', "
        "'declare(strict_types=1);'], ['', 'const PATIENCE = -9', ''], file_get_contents('{docs}/till.php'))); }} catch (Exception $e) {{}}",
    }[language].format(docs=DOCS)
    flag = {"python": "-c", "node": "-e", "php": "-r"}[language]
    environ = {"MCFD_NIM": NIM, "MCFD_KEY": "x", "PATH": os.environ["PATH"]}
    command = ["unshare", "-rn", TILLS[language][0], flag, look]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)
    assert f"https://mcfd.local:8480/v1/mcf/{NIM}" in done.stdout, done.stdout + done.stderr


def announce(port: int) -> None:
    """Answers as Avahi does, for a box on that port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as group:
        group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        group.bind(("", 5353))
        member = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
        group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        while True:
            query, peer = group.recvfrom(9000)
            if query[12:] == QUESTION and query[:12] == b"\0\0\0\0\0\x01" + bytes(6):
                group.sendto(ANSWER.replace(b"!3\x06caisse", port.to_bytes(2, "big") + b"\x06caisse"), peer)


def sold(folder: Path, language: str) -> int:
    """Exit code of a till that is to sell with nothing but its key and the box's authority."""
    shop = Shop(folder, machines=(Machine(folder),), config={"server": {"host": "0.0.0.0", "tls": "internal"}})  # noqa: S104
    authority = folder / "authority.pem"
    with shop:
        shop.use_https()
        shop.start()
        threading.Thread(target=announce, args=(shop.port,), daemon=True).start()
        environ = {"MCFD_KEY": shop.key("test"), "MCFD_NIM": NIM, "PATH": os.environ["PATH"]}
        environ |= {"MCFD_CA": str(authority), "NODE_EXTRA_CA_CERTS": str(authority)}
        program, file = TILLS[language]
        return subprocess.run([program, str(DOCS / file), "FOUND-1"], check=False, timeout=120, env=environ).returncode


def begins_tls(folder: Path) -> int:
    """0 when the C# till comes to the announced port with a TLS greeting: what it trusts is the system's store, which no test may change."""
    options = ["-nowarn:649", "-r:System.Net.Http", "-r:System.Runtime.Serialization", f"-out:{folder}/till.exe"]
    subprocess.run(["mcs", *options, str(DOCS / "till.cs")], check=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        threading.Thread(target=announce, args=(server.getsockname()[1],), daemon=True).start()
        environ = {"MCFD_KEY": "ak_test_x", "MCFD_NIM": NIM, "PATH": os.environ["PATH"]}
        with subprocess.Popen(["mono", str(folder / "till.exe"), "FOUND-1"], env=environ) as till:
            try:
                peer, _ = server.accept()
                with peer:
                    return 0 if peer.recv(1) == TLS_HANDSHAKE else 1
            finally:
                till.kill()


if __name__ == "__main__":
    where, of = Path(sys.argv[1]), sys.argv[2]
    sys.exit(begins_tls(where) if of == "csharp" else sold(where, of))
