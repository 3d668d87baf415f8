"""Receives closures by HTTPS, into the table of closures.py (docs/upstream.md)."""

import hashlib
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from closures import open_table, take

from common.wire.closure import MAX_BYTES
from common.wire.errors import BadEvent
from common.wire.signing import NotSigned

table, keys = open_table()


class Closures(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = self.headers["content-length"] or ""
        if not (length.isascii() and length.isdigit() and int(length) <= MAX_BYTES):
            return self.answer(413)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(length))
        try:
            with table:
                take(table, keys, headers, body)
        except BadEvent as error:
            return self.answer(422, {"error": str(error)})
        except NotSigned as error:
            return self.answer(401, {"error": str(error)})
        self.answer(200, {"id": headers["webhook-id"], "sha256": hashlib.sha256(body).hexdigest()})

    def answer(self, status, content=None):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(content or {}).encode())


HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Closures).serve_forever()
