"""`mcfd` behind another edge than its own, to compare them: `python -m siege.edge_daemon KIND run --config FILE`. Not for a shop."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import sys
from collections.abc import Generator
from typing import Any

import uvicorn
from litestar import Litestar

from daemon.api.http.server import HttpServer, ServerConfig
from daemon.cli import main


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the daemon."""
        yield


class UvicornAlone(HttpServer):
    """uvicorn with httptools as it comes."""

    def __init__(self, app: Litestar, config: ServerConfig) -> None:
        self._given = config
        self._alone = _Uvicorn(
            uvicorn.Config(
                app, host=config.host, port=config.port, http="httptools", ws="none", lifespan="off", access_log=False,
                proxy_headers=False, log_config=None, ssl_certfile=config.tls_cert, ssl_keyfile=config.tls_key,
                timeout_graceful_shutdown=5,
            )
        )  # fmt: skip

    @property
    def port(self) -> int:
        return self._given.port

    async def start(self) -> None:
        self._serving = asyncio.ensure_future(self._alone.serve())
        while not self._alone.started and not self._serving.done():  # noqa: ASYNC110  uvicorn tells nobody
            await asyncio.sleep(0.01)

    async def failed(self) -> None:
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        self._alone.should_exit = True
        await self._serving


class GranianEmbedded(UvicornAlone):
    """Granian on the daemon's own loop. It is none of our libraries: `pip install granian` first."""

    def __init__(self, app: Litestar, config: ServerConfig) -> None:
        constants, embedded = (importlib.import_module(f"granian.{name}") for name in ("constants", "server.embed"))

        self._given = config
        self._granian: Any = embedded.Server(
            app, address=config.host, port=config.port, interface=constants.Interfaces.ASGI, log_enabled=False,
            ssl_cert=config.tls_cert, ssl_key=config.tls_key,
        )  # fmt: skip

    async def start(self) -> None:
        self._serving = asyncio.ensure_future(self._granian.serve())
        await asyncio.sleep(1)

    async def stop(self) -> None:
        self._granian.stop()
        await self._serving


KINDS = {"ours": HttpServer, "uvicorn": UvicornAlone, "granian": GranianEmbedded}

if __name__ == "__main__":
    kind = sys.argv.pop(1)
    vars(importlib.import_module("daemon.app.serve"))["HttpServer"] = KINDS[kind]
    sys.exit(main())
