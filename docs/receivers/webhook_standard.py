"""Webhooks, verified with the library of Standard Webhooks (docs/clients.md)."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["SECRET"])


class Events(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            event = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except WebhookVerificationError:  # also when webhook-timestamp is more than five minutes off
            return self.answer(401)
        print(event["type"], event["data"].get("codeSecef", ""), flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Events).serve_forever()
