"""First start on the shop's network: what `first-start-mcfd.service` serves. In a network namespace of its own, as a program (`python
test_first_start_on_the_network.py FOLDER`): it listens on every address of its box."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.browser import PASSWORD
from support.empty_box import EmptyBox
from support.ports import free_port
from support.shop import NIM, PLAIN, invoice, start_program, wait_for
from support.tools import cannot, need

from daemon.cli.output import UNAVAILABLE

FIRST, SECOND = "192.168.7.20", "10.9.0.1"
IN_A_NETWORK = f'ip link set lo up && ip addr add {FIRST}/24 dev lo && exec "$@"'


@pytest.mark.long
def test_a_phone_of_the_shop_sets_the_box_up(tmp_path: Path) -> None:
    """Every address and the host name are shown, also one that comes later; what is asked for in clear is sent on to TLS; there is no API, and
    wrong codes are counted for each address. The certificate that the phone has taken is the daemon's, and that of the tills, afterwards."""
    need("unshare", "ip", "haproxy")
    if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode:
        cannot("no network namespaces for this user")
    command = ["unshare", "-rn", "sh", "-c", IN_A_NETWORK, "sh", sys.executable, __file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_box_whose_clock_begins_in_1970(tmp_path: Path) -> None:
    """No certificate can be made: the page is on the box alone. Once the network has set the clock it ends, and its unit starts it again, on the
    network; a box without a screen would be out of reach for ever."""
    front, folder, log, right = (tmp_path / name for name in ("front", "run", "log", "right"))
    front.mkdir()
    folder.mkdir()
    log.touch()
    words = ["setup", "--page", "0.0.0.0", "--hand-over", str(folder), "--http-port", str(free_port())]  # noqa: S104  not listened on
    words += ["--port", str(tmp_path / "none"), "--ledger", str(tmp_path / "ledger")]
    environ = {**os.environ, "LC_ALL": "en_US.UTF-8", "FRONT_FOLDER": str(front)}
    first = ("support.empty_box", "set_clock_back", {"right": str(right)})
    process = start_program("mcfd", words, log, environ, first)
    try:
        wait_for(lambda: "http://127.0.0.1" in log.read_text(), "the page")
        assert "this box alone" in log.read_text()
        right.touch()
        assert process.wait(20) == UNAVAILABLE
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)


class Phone(httpx.Client):
    """A browser on the shop's network, with the address that it calls from; it accepts any certificate."""

    def __init__(self, box: EmptyBox, host: str = FIRST, source: str = FIRST) -> None:
        anyone = ssl.create_default_context()
        anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
        transport = httpx.HTTPTransport(verify=anyone, local_address=source)
        base = f"https://{host}:{box.port}"
        super().__init__(base_url=base, transport=transport, timeout=60, headers={"Origin": base})


def certificate(box: EmptyBox, host: str) -> str:
    return ssl.get_server_certificate((host, box.port))


def set_up(folder: Path) -> None:
    with EmptyBox(folder) as box:
        box.set_up_in_page("0.0.0.0")  # noqa: S104  in a network of its own
        text = box.log_file.read_text()
        code = httpx.URL(box.link).params["code"]
        assert f"https://{FIRST}:{box.port}/ui/setup/code?code={code}" in text
        assert re.search(rf"https://{re.escape(socket.gethostname().lower())}(\.local)?:{box.port}/ui/setup/code", text)
        in_clear = httpx.get(f"http://{FIRST}:{box.port}/ui/setup/code", verify=PLAIN)
        assert (in_clear.status_code, in_clear.headers["location"][:8]) == (308, "https://")
        subprocess.run(["ip", "addr", "add", f"{SECOND}/24", "dev", "lo"], check=True)
        wait_for(lambda: f"https://{SECOND}:{box.port}/ui/setup/code" in box.log_file.read_text(), "the new address")
        before = certificate(box, SECOND)
        names = httpx.get(f"https://{SECOND}:{box.port}/", verify=trusting(folder, before))
        assert names.headers["location"] == "/ui/setup"
        guess(box)
        assert not (folder / "tls").exists()
        key = decide(box, code)
        wait_for(box.is_ready, "a ready daemon")
        assert certificate(box, FIRST) == before
        till = {"Authorization": f"Bearer {key}"}
        assert box.http.post(f"/v1/mcf/{NIM}/certify", json=invoice("F-1"), headers=till).status_code == 200
        with Phone(box) as phone:
            local = f"{socket.gethostname().lower().partition('.')[0]}.local"
            assert phone.get("/health/live", headers={"Host": f"{local}:{box.port}"}).status_code == 200


def trusting(folder: Path, pem: str) -> ssl.SSLContext:
    """That certificate alone, which has to name what is called."""
    file = folder / "shown.pem"
    file.write_text(pem)
    context = ssl.create_default_context(cafile=str(file))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def guess(box: EmptyBox) -> None:
    with Phone(box, source=SECOND) as phone:
        assert phone.get("/v1/me").status_code == 404
        answers = [phone.post("/ui/setup/code", data={"code": "AAAA-AAAA"}).status_code for _ in range(6)]
        assert answers == [401, 401, 401, 401, 401, 429]


def decide(box: EmptyBox, code: str) -> str:
    """The key for the till; mcfd starts."""
    with Phone(box) as phone:
        cookie = phone.get(f"/ui/setup/code?code={code}").headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Secure"} <= set(cookie.split("; "))
        page = phone.get("/ui/setup?look=1").text
        assert re.search(r'value="https"[^>]* checked', page)
        wish = {
            f"nim.{NIM}": "1",
            "network": "https",
            "isf": "1",
            "till": "Caisse 1",
            "name": "issa",
            "password": PASSWORD,
        }
        answer = phone.post("/ui/setup", data=wish, follow_redirects=True)
        found = re.search(r'data-testid="new-key">([^<]+)<', answer.text)
        assert found, answer.text
        assert phone.get("/ui/setup/authority.pem").content == (box.folder / "tls/ca.pem").read_bytes()
        box.http = httpx.Client(
            base_url=f"https://{FIRST}:{box.port}", verify=str(box.folder / "tls/ca.pem"), timeout=60
        )
        assert f"https://{FIRST}:{box.port}/ui/welcome" in phone.post("/ui/setup/start").text
        return found[1]


if __name__ == "__main__":
    set_up(Path(sys.argv[1]))
