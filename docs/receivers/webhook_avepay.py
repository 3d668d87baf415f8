"""Webhooks, verified with the published client (docs/clients.md)."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from avepay.mcf import AvePayError
from avepay.mcf.webhooks import Webhooks

webhooks = Webhooks(os.environ["SECRET"])


class Events(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            event = webhooks.verify(body, self.headers.get("X-Avepay-Signature"))
        except AvePayError:
            return self.answer(401)
        print(event.type, event.data.get("codeSecef", ""), flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Events).serve_forever()
