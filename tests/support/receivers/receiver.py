"""A headquarters over HTTP in a process of its own: checks signatures, keeps each event once, misbehaves when told to.

    python receiver.py --port 0 --book FILE --key whsec_… [--cert PEM]

It prints `ready PORT`. `FILE` is a JSONL of every POST: what came, whether the signature held, what was answered; it
survives a kill of the process, as a real database would. `POST /_next` with a JSON list scripts the answers to the
next requests: `{"status": 503, "headers": {…}, "body": "…"}`, `{"delay": s}`, `{"cut": true}` (the event is kept and
the connection closed without an answer), `{"endless": true}`, `{"continues": true}` (1xx without end), `{"receipt": true}` (id and hash of the event as the body), and any of them with `"nim"` for one machine only.
`POST …/presence` is verified, kept aside and answered with the next of the list that `POST /_wanted` brought; `GET` shows them.
"""

import argparse
import base64
import hashlib
import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook, WebhookVerificationError

WINDOW_S = 300


def verify(key, headers, body):
    """True when one of the signatures is good: `v1` by the reference library, `v1a` by hand."""
    if key.startswith("whsec_"):
        try:
            Webhook(key).verify(body, headers)
        except WebhookVerificationError:
            return False
        return True
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key.removeprefix("whpk_")))
    if abs(time.time() - int(headers["webhook-timestamp"])) > WINDOW_S:
        return False
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for signature in headers["webhook-signature"].split():
        version, _, value = signature.partition(",")
        try:
            if version == "v1a":
                public.verify(base64.b64decode(value), content)
                return True
        except InvalidSignature:
            continue
    return False


class Book:
    """The events, each once, in order of arrival; and the script of what to do next."""

    def __init__(self, path, key):
        self.key = key
        self.script = []
        self.wanted = []
        self.presences = []
        self.lock = threading.Lock()
        self.file = path.open("a+", encoding="utf-8")
        self.file.seek(0)
        self.seen = {line["id"] for line in map(json.loads, self.file) if line["kept"]}

    def next_step(self, nim):
        with self.lock:
            for step in self.script:
                if step.get("nim", nim) == nim:
                    self.script.remove(step)
                    return step
        return {}

    def note(self, headers, body, *, status, keep):
        """True when the event is new and kept."""
        with self.lock:
            is_new = keep and headers["webhook-id"] not in self.seen
            if is_new:
                self.seen.add(headers["webhook-id"])
            line = {
                "id": headers["webhook-id"],
                "kept": is_new,
                "status": status,
                "at": time.time(),
                "headers": headers,
                "body": body.decode(),
            }
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
        return is_new


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    book: Book

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/_next":
            self.book.script.extend(json.loads(body))
            return self.answer(204)
        if self.path == "/_wanted":
            self.book.wanted.extend(json.loads(body))
            return self.answer(204)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not verify(self.book.key, headers, body):
            self.book.note(headers, body, status=401, keep=False)
            return self.answer(401, body="signature")
        if self.path.endswith("/presence"):
            return self.presence(headers, body)
        event = json.loads(body)
        nim = event.get("nim") or event["source"].removeprefix("/mcf/")
        return self.play(self.book.next_step(nim), headers, body)

    def presence(self, headers, body):
        with self.book.lock:
            self.book.presences.append({"headers": headers, "body": body.decode()})
            answer = self.book.wanted.pop(0) if self.book.wanted else {}
        return self.answer(200, body=json.dumps(answer))

    def do_GET(self):
        with self.book.lock:
            return self.answer(200, body=json.dumps(self.book.presences))

    def play(self, step, headers, body):
        status = step.get("status", 200)
        takes = status in (200, 204)
        new = self.book.note(headers, body, status=status, keep=takes)
        time.sleep(step.get("delay", 0))
        if step.get("cut"):
            self.close_connection = True
            return None
        if step.get("receipt"):
            step["body"] = json.dumps({"id": headers["webhook-id"], "sha256": hashlib.sha256(body).hexdigest()})
        if step.get("continues"):
            return self.run_on(b"HTTP/1.1 100 Continue\r\n\r\n" * 200)
        if step.get("endless"):
            self.send_response(200)
            self.end_headers()
            return self.run_on(b"x" * 4096)
        return self.answer(status if new or not takes else 409, step.get("headers", {}), step.get("body", ""))

    def answer(self, status, headers=(), body=""):
        self.send_response_only(status)
        for name, value in {"date": self.date_time_string(), **dict(headers)}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        if status != 204:
            self.wfile.write(body.encode())

    def run_on(self, piece):
        self.close_connection = True
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            return

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that goes away is what half of the tests are about."""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--book", type=Path, required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--cert", type=Path)
    arguments = parser.parse_args()
    handler = type("Handler", (Handler,), {"book": Book(arguments.book, arguments.key)})
    server = Server(("127.0.0.1", arguments.port), handler)
    if arguments.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.cert)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    sys.stdout.write(f"ready {server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
