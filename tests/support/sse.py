"""A screen that listens: server-sent events, read in a thread."""

import http.client
import json
import socket
import threading
from contextlib import suppress
from typing import Any, NamedTuple, Self

from support.shop import NIM, Shop, wait_for

from daemon.core.ledger.attempt import Mode


class Heard(NamedTuple):
    id: int
    type: str
    data: Any


class Screen:
    """`ended` tells how the stream ended: "properly", or with which error."""

    def __init__(self, shop: Shop, mode: Mode = "live", last: int | None = None) -> None:
        self.heard: list[Heard] = []
        self.ended = ""
        self._headers = shop.headers(mode) | ({} if last is None else {"Last-Event-ID": str(last)})
        self._connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=60)
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> Self:
        self._connection.request("GET", f"/v1/mcf/{NIM}/events", headers=self._headers)
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._response.close()
        self._connection.close()

    def wait_for(self, kind: str, count: int = 1) -> list[Heard]:
        """So many events of that type."""
        wait_for(lambda: len(self.of(kind)) >= count, f"{count} × {kind} in {self.types}")
        return self.of(kind)

    def of(self, kind: str) -> list[Heard]:
        return [event for event in self.heard if event.type == kind]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.heard]

    def _listen(self) -> None:
        try:
            self._read()
            self.ended = "properly"
        except (http.client.HTTPException, OSError) as error:
            self.ended = type(error).__name__

    def _read(self) -> None:
        fields: dict[str, str] = {}
        while line := self._response.readline():
            text = line.decode().rstrip("\n")
            if not text and "data" in fields:
                self.heard.append(Heard(int(fields["id"]), fields["event"], json.loads(fields["data"])))
            name, _, value = text.partition(": ")
            fields = {**fields, name: value} if text else {}
