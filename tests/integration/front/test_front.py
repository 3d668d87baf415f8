"""HAProxy with our configuration, real, in front of a server that only says who asked."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from structlog.testing import capture_logs
from support.ports import free_port
from support.processor import within
from support.receivers.authority import Authority
from support.tools import need

from common.front import FrontServer, check_pair
from common.front_config import ERRORS, TRUSTED_HEADER, Front, FrontLimits, configuration, error_files, program
from common.http_server import HttpServer, ServerConfig

QUICK = FrontLimits(head_seconds=1, idle_seconds=1, stall_seconds=1)


@pytest.fixture(autouse=True)
def haproxy() -> str:
    found = program()
    if found is None:
        need("haproxy")
    return found or ""


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Tells the client and the scheme; `/known` says that a valid key was shown, `/refused` is 403; the query is how long it takes; `/unread` reads no body."""
    await asyncio.sleep(float(scope["query_string"] or b"0"))
    size = 0
    while scope["path"] != "/unread" and (message := await receive())["type"] == "http.request":
        size += len(message["body"])
        if not message["more_body"]:
            break
    body = msgspec.json.encode({"client": scope["client"][0], "scheme": scope["scheme"], "size": size})
    headers = [(b"content-length", b"%d" % len(body))]
    if scope["path"] == "/known":
        headers.append((TRUSTED_HEADER, b"1"))
    status = 403 if scope["path"] == "/refused" else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def standing(
    limits: FrontLimits | None = None, pem: bytes | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[FrontServer]:
    front = FrontServer(None, host, 0, pem=pem, limits=limits)
    await front.start()
    server = HttpServer(app, ServerConfig(behind=front.socket, port=front.port, grace=1))
    await server.start()
    try:
        yield front
    finally:
        await server.stop()
        await front.stop()


def client(front: FrontServer, address: str = "127.0.0.1", *, tls: bool = False) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(local_address=address, verify=False)  # our own
    return httpx.AsyncClient(
        transport=transport, base_url=f"{'https' if tls else 'http'}://127.0.0.1:{front.port}", timeout=30
    )


async def raw(front: FrontServer, data: bytes, address: str = "127.0.0.1") -> bytes:
    """What comes back until the end of the connection."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port, local_addr=(address, 0))
    except ConnectionError:
        return b""
    try:
        writer.write(data)
        async with asyncio.timeout(30):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("binds", [("0.0.0.0:8480",), ("127.0.0.1:8480", "[::1]:8480 v6only")])
def test_haproxy_takes_the_configuration(tls: bool, binds: tuple[str, ...], tmp_path: Path, haproxy: str) -> None:
    """Without a warning."""
    folder = Path(tempfile.mkdtemp())
    if tls:
        pem = Authority(tmp_path).issue()
        (folder / "server.pem").write_bytes(check_pair(pem, pem))
    for name, content in error_files().items():
        (folder / name).write_bytes(content)
    file = folder / "haproxy.cfg"
    file.write_text(configuration(Front(folder=folder, binds=binds, tls=tls, limits=FrontLimits())))
    done = subprocess.run([haproxy, "-c", "-f", str(file)], capture_output=True, text=True, check=False, timeout=60)
    shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


@pytest.mark.parametrize("tls", [False, True])
async def test_the_server_sees_the_client(tls: bool, tmp_path: Path) -> None:
    """Its own address and scheme, whatever it sends about them; what the server tells HAProxy goes no further."""
    pem = Authority(tmp_path).issue()
    lie = {"X-Forwarded-For": "10.9.9.9", "X-Forwarded-Proto": "ftp", "Forwarded": "for=10.9.9.9"}
    value = check_pair(pem, pem) if tls else None
    async with standing(pem=value) as front, client(front, "127.0.0.9", tls=tls) as till:
        answer = await till.get("/known", headers=lie)
        assert answer.json() == {"client": "127.0.0.9", "scheme": "https" if tls else "http", "size": 0}
        assert TRUSTED_HEADER.decode() not in answer.headers
        assert (await till.post("/", content=b"x" * 900_000)).json()["size"] == 900_000


async def test_http_on_the_tls_port_is_redirected(tmp_path: Path) -> None:
    """To the same path by HTTPS, and with the same method."""
    pem = Authority(tmp_path).issue()
    async with standing(pem=check_pair(pem, pem)) as front, client(front) as till:
        answer = await till.post("/a?b", content=b"{}")
        assert (answer.status_code, answer.headers["location"]) == (308, f"https://127.0.0.1:{front.port}/a?b")


async def test_a_renewed_certificate_breaks_no_connection(tmp_path: Path) -> None:
    """New connections get it; the one that is open goes on."""
    authority = Authority(tmp_path)
    pem = authority.issue()
    async with standing(pem=check_pair(pem, pem)) as front, client(front, tls=True) as till:
        assert (await till.get("/")).status_code == httpx.codes.OK
        before = await served_certificate(front)
        fresh = authority.issue()
        await front.renew(check_pair(fresh, fresh))
        assert await served_certificate(front) != before
        assert (await till.get("/")).status_code == httpx.codes.OK


async def served_certificate(front: FrontServer) -> str:
    import ssl  # noqa: PLC0415  # for this alone

    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", front.port))


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"G"], ids=["in a header", "in the line"])
async def test_a_slow_head_meets_its_deadline(data: bytes) -> None:
    """408; a connection without a byte is closed without one."""
    async with standing(QUICK) as front:
        with within(6):
            answer, silence = await asyncio.gather(raw(front, data), raw(front, b""))
    assert silence == b""
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", [b"/", b"/unread"])
async def test_a_body_that_stalls_is_refused(path: bytes) -> None:
    """408 as a problem, and the server does not see it; a request that is complete has no deadline, however long its answer takes."""
    async with standing(QUICK) as front, client(front) as till:
        with within(6):
            stalled, slow = await asyncio.gather(
                raw(front, b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"), till.get("/?2.5")
            )
    head, _, body = stalled.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    content = msgspec.json.decode(body)
    assert (content["code"], content["status"], content["error"]) == (ERRORS[408][0], 408, content["detail"])
    assert slow.status_code == httpx.codes.OK


async def test_a_large_body_that_is_not_read_holds_no_connection() -> None:
    """The answer, and the end of a client that does not go on."""
    head = b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n"
    async with standing(QUICK) as front:
        with within(6):
            assert b" 200 " in await raw(front, head + b"x" * 40_000)


@pytest.mark.parametrize(
    "data",
    [
        b"AT\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused(data: bytes) -> None:
    """400; the server does not see it."""
    async with standing() as front:
        assert (await raw(front, data)).startswith(b"HTTP/1.1 400 ")


async def test_a_request_without_host_is_a_problem() -> None:
    """As each error that has a whole head; HTTP/1.0 needs no Host."""
    async with standing() as front:
        head, _, body = (await raw(front, b"GET / HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert msgspec.json.decode(body)["code"] == ERRORS[400][0]


async def test_an_address_has_so_many_connections_until_it_has_shown_a_key() -> None:
    """The next one is refused, and other addresses are served; with a key there is room for more."""
    limits = FrontLimits(unknown_per_address=3, per_address=6)
    async with standing(limits) as front, contextlib.AsyncExitStack() as stack:

        async def fill(address: str, count: int) -> None:
            for _ in range(count):
                _, writer = await asyncio.open_connection("127.0.0.1", front.port, local_addr=(address, 0))
                stack.callback(writer.close)

        async with client(front, "127.0.0.7") as till:
            assert (await till.get("/known")).status_code == httpx.codes.OK
        await fill("127.0.0.7", 5)
        await fill("127.0.0.8", 3)
        assert await raw(front, b"GET / HTTP/1.0\r\n\r\n", "127.0.0.8") == b""
        for address in ("127.0.0.7", "127.0.0.9"):
            assert b" 200 " in await raw(front, b"GET / HTTP/1.0\r\n\r\n", address)


async def test_what_is_left_is_for_addresses_with_a_key() -> None:
    """However many addresses a stranger has, a till that has shown its key gets in."""
    limits = FrontLimits(connections=12, reserved=6, unknown_per_address=2)
    async with standing(limits) as front, contextlib.AsyncExitStack() as stack:
        async with client(front, "127.0.0.7") as till:
            assert (await till.get("/known")).status_code == httpx.codes.OK
        for number in range(20, 40):  # more than there is room for
            with contextlib.suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", front.port, local_addr=(f"127.0.0.{number}", 0))
                stack.callback(writer.close)
        async with asyncio.timeout(limits.head_seconds / 2):  # before strangers that say nothing are closed
            assert b" 200 " in await raw(front, b"GET / HTTP/1.0\r\n\r\n", "127.0.0.7")


async def test_listeners_may_have_high_descriptors() -> None:
    """A process with hundreds of open files hands its listeners over all the same: HAProxy ended at once, again and again."""
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            stack.callback(os.close, os.open("/dev/null", os.O_RDONLY))
        async with standing(FrontLimits(connections=12, reserved=6)) as front, client(front) as till:
            assert (await till.get("/")).status_code == httpx.codes.OK


async def test_requests_without_a_key_come_at_a_bounded_rate() -> None:
    """429 as a problem for who asks too often; an address with a key goes on."""
    async with standing(FrontLimits(unknown_requests=5)) as front:
        async with client(front, "127.0.0.8") as stranger:
            statuses = [(await stranger.get("/")).status_code for _ in range(8)]
        assert statuses == [200] * 5 + [429] * 3
        async with client(front, "127.0.0.7") as till:
            assert {(await till.get("/known")).status_code for _ in range(8)} == {200}


async def test_errors_without_a_key_come_at_a_bounded_rate() -> None:
    """Wrong keys cost the server nothing once there were some; what is refused counts on."""
    async with standing(FrontLimits(unknown_errors=5, unknown_requests=1000)) as front:
        async with client(front, "127.0.0.8") as stranger:
            statuses = [(await stranger.get("/refused")).status_code for _ in range(8)]
            assert (await stranger.get("/")).status_code == httpx.codes.TOO_MANY_REQUESTS
        assert statuses == [403] * 6 + [429] * 2
        async with client(front, "127.0.0.7") as till:
            assert (await till.get("/known")).status_code == httpx.codes.OK
            assert [(await till.get("/refused")).status_code for _ in range(8)] == [403] * 8


async def test_haproxy_that_ended_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started again, on the same port."""
    monkeypatch.setattr("common.front.RESTART_SECONDS", 0.01)
    async with standing() as front, client(front) as till:
        assert (await till.get("/")).status_code == httpx.codes.OK
        front._process.kill()
        await front._process.wait()
        async with asyncio.timeout(30):
            while not await raw(front, b"GET / HTTP/1.0\r\n\r\n"):
                pass


async def test_without_a_server_haproxy_says_so() -> None:
    """503 as a problem with Retry-After, as long as the server is not there; then its answers, without a restart of HAProxy."""
    front = FrontServer(None, "127.0.0.1", 0)
    await front.start()
    try:
        async with client(front) as till:
            for _ in range(2):
                answer = await till.get("/")
                assert (answer.status_code, answer.json()["code"]) == (503, ERRORS[503][0])
                assert int(answer.headers["retry-after"]) > 0
                server = HttpServer(app, ServerConfig(behind=front.socket, port=front.port, grace=1))
                await server.start()
                assert (await till.get("/")).status_code == httpx.codes.OK
                await server.stop()
    finally:
        await front.stop()


async def test_haproxy_of_the_unit_reloads_a_configuration_that_has_changed(haproxy: str) -> None:
    """It then serves the new port; with the same configuration it is left as it is."""
    folder, ports = Path(tempfile.mkdtemp(prefix="front-")), [free_port(), free_port()]
    master = folder / "master.sock"

    async def reloads() -> list[str]:
        reader, writer = await asyncio.open_unix_connection(master)
        writer.write(b"show proc\n")
        listed = (await reader.readuntil(b"# programs")).decode()
        writer.close()
        return [line.split()[2] for line in listed.splitlines() if "master" in line]

    front, moved = (FrontServer(folder, "127.0.0.1", port) for port in ports)
    with capture_logs() as logged:
        await front.start()
    assert logged == []  # that HAProxy is not running yet is no warning
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        haproxy,
        "-W",
        "-q",
        "-f",
        str(folder / "haproxy.cfg"),
        "-S",
        str(master),
    ]
    process = await asyncio.create_subprocess_exec(*command, start_new_session=True)
    try:
        listed: list[str] = []
        async with asyncio.timeout(30):
            while not listed:
                with contextlib.suppress(OSError, EOFError):
                    listed = await reloads()
        await front.start()
        assert await reloads() == ["0"]
        await moved.start()
        async with asyncio.timeout(30):
            while not (await raw(moved, b"GET / HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 503 "):
                pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        shutil.rmtree(folder)


@pytest.mark.timeout(30)
async def test_what_haproxys_user_puts_in_the_place_of_a_file_does_not_stop_the_start(tmp_path: Path) -> None:
    """A pipe that nothing writes to, a file without an end: the folder is theirs too, and the daemon starts without HAProxy's leave."""
    os.mkfifo(tmp_path / "haproxy.cfg")
    (tmp_path / "400.http").symlink_to("/dev/zero")
    await FrontServer(tmp_path, "127.0.0.1", free_port()).start()
    assert (tmp_path / "haproxy.cfg").read_text().startswith("#")
    assert (tmp_path / "400.http").read_bytes() == error_files()["400.http"]


async def test_haproxy_of_the_unit_binds_an_address_of_ipv6() -> None:
    """Not the IPv4 address of the same port with it."""
    with tempfile.TemporaryDirectory(prefix="front-") as folder:
        await FrontServer(Path(folder), "::1", 8480).start()
        assert "bind [::1]:8480 v6only\n" in (Path(folder) / "haproxy.cfg").read_text()
