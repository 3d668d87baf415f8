"""An HTTP server whose answers a test gives: a box or a site that says one thing, or what stands between a client and a server."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import httpx
from support.shop import PLAIN


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    status: int
    content: bytes
    headers: Mapping[str, str] = {}


def json_answer(status: int, value: object) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def passed_on(request: Request, base: str) -> Answer:
    """What the server at `base` answers to it."""
    own = ("host", "connection", "content-length")
    headers = {name: value for name, value in request.headers.items() if name.lower() not in own}
    with httpx.Client(base_url=base, timeout=60, trust_env=False, verify=PLAIN) as client:
        found = client.request(request.method, request.path, content=request.body, headers=headers)
    return Answer(found.status_code, found.content, {"Content-Type": found.headers.get("Content-Type", "")})


@contextmanager
def answering(answer: Callable[[Request], Answer | None]) -> Iterator[str]:
    """The server's URL. None is a connection that ends without an answer; each connection ends after one."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = answer(Request(self.command, self.path, self.headers, body))
            if found is None:
                return
            self.send_response(found.status)
            for name, value in {"Content-Length": str(len(found.content)), **found.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(found.content)

        do_GET = do_POST = respond  # noqa: N815  names of the library

        def log_message(self, *_: object) -> None:
            """Writes no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
