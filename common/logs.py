"""The log of daemon and headquarters on stderr: one event with keys a line; JSON unless stderr is a terminal.

An event has a fixed name (`certification.ended`, `line.up`: a noun and what happened) and values; `request_id` and the
like are bound with `structlog.contextvars`. API keys, secrets, customers and bodies are never passed to the log, and
what looks like one is removed here as a second barrier. Records of `logging` take the same way."""

import contextlib
import json
import logging
import os
import re
import sys
import time
from collections import deque
from collections.abc import Mapping, MutableMapping
from datetime import date
from decimal import Decimal
from pathlib import PurePath
from types import NoneType
from typing import IO, Any, Literal
from uuid import UUID

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["auto", "json", "console"]

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
"""syslog's"""
TALKATIVE = (
    "httpx",
    "httpcore",
    "litestar",
    "markdown_it",
    "multipart",
    "sqlalchemy",
    "uvicorn",
)
"""Loggers of libraries that write SQL values, addresses or bodies at `info` or `debug`: limited to warnings."""

FORBIDDEN = frozenset({"authorization", "api_key", "secret", "password", "cookie", "customer", "customer_name", "body"})
PLAIN = frozenset({str, int, float, bool, NoneType})
WITHHELD = "[withheld]"
SECRETS = re.compile(r"(?P<kind>ak_(?:live|test)_|whsec_|whsk_)[A-Za-z0-9+/=_-]+|(?P<scheme>[Bb]earer\s+)[^\s\"',\\]+")

RECENT: deque[Mapping[str, Any]] = deque(maxlen=500)
"""The newest events for the page, without secrets; except frequent ones that are stored elsewhere."""
NOT_RECENT = frozenset({("request.answered", "info"), ("certification.ended", "info")})

_threshold = LEVELS["info"]


def configure(level: str = "info", form: Format = "auto", stream: IO[str] | None = None) -> None:
    """Gives structlog and `logging` one line format on `stream` (stderr); may be called again."""
    out = stream or sys.stderr
    eyes = out.isatty() if form == "auto" else form == "console"
    set_level(level)
    render = _render_console(out) if eyes else _render_json
    prefix = [_prefix_priority] if _is_journal(out) else []
    structlog.configure(
        processors=[_drop_light, *_enrich(eyes=eyes), render, withhold_text, *prefix],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS["debug"]),
        logger_factory=lambda *_: _Lines(out),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Door()]
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def set_level(level: str) -> None:
    """Takes effect at once, also for bound loggers (SIGHUP)."""
    global _threshold  # noqa: PLW0603  # the one setting of a log that changes while it runs
    _threshold = LEVELS[level]
    logging.getLogger().setLevel(_threshold)


def withhold_fields(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Makes values plain text and numbers; replaces forbidden fields by a mark."""
    for name, value in event.items():
        if name in FORBIDDEN:
            event[name] = WITHHELD
        elif type(value) not in PLAIN and name != "exc_info":
            event[name] = _plain(value)
    return event


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, NoneType)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {str(name): WITHHELD if name in FORBIDDEN else _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (BaseException, PurePath, UUID, Decimal, date)):
        return str(value)
    return f"<{type(value).__name__}>"  # a record or a request would contain a customer


def withhold_text(_: WrappedLogger, __: str, line: str | EventDict) -> str | EventDict:
    """Cuts API keys, signing secrets and bearer tokens anywhere in the finished line after their prefix."""
    if isinstance(line, str) and ("ak_" in line or "wh" in line or "earer" in line):
        return SECRETS.sub(lambda found: (found["kind"] or found["scheme"]) + WITHHELD, line)
    return line


def _is_journal(stream: IO[str]) -> bool:
    """Whether systemd's journal reads it (systemd.exec(5), $JOURNAL_STREAM)."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _prefix_priority(_: WrappedLogger, method: str, line: str | EventDict) -> str:
    """The journal takes a line's priority from there and removes it (sd-daemon(3)), for `journalctl -p warning`."""
    return f"<{PRIORITIES.get(method, PRIORITIES['error'])}>{line}"


class _Lines:
    """Writes finished lines. A lost stderr must not stop a certification: such a line is lost."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    debug = info = warning = error = critical = exception = fatal = warn = log = msg


class _Door(logging.Handler):
    """Passes records of `logging` to structlog: the logger's name as `logger`, the text as the event."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        log.log(_nearest(record.levelno), record.getMessage(), logger=record.name, exc_info=record.exc_info)


def _nearest(levelno: int) -> int:
    return max((level for level in LEVELS.values() if level <= levelno), default=LEVELS["debug"])


def _drop_light(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
    if LEVELS.get(method, LEVELS["error"]) < _threshold:
        raise structlog.DropEvent
    return event


def _enrich(*, eyes: bool) -> list[Processor]:
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S.%f" if eyes else "iso", utc=not eyes, key="time"),
        withhold_fields,
        _remember,
    ]
    return common if eyes else [*common, structlog.processors.format_exc_info]


def _remember(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if (event["event"], event["level"]) not in NOT_RECENT:
        fields = {name: withhold_text(None, "", value) for name, value in event.items() if name != "exc_info"}
        RECENT.append({**fields, "at": time.time()})
    return event


def _render_console(out: IO[str]) -> Processor:
    # Plain tracebacks: the pretty ones print local variables.
    return structlog.dev.ConsoleRenderer(
        timestamp_key="time", colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
    )


def _render_json(_: WrappedLogger, __: str, event: MutableMapping[str, Any]) -> str:
    line = {"time": event.pop("time"), "level": event.pop("level"), "event": event.pop("event"), **event}
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()  # enc_hook: a Text is a subclass of str
    except (ValueError, OverflowError):  # a lone surrogate, an integer of more than 64 bits
        return json.dumps(line, default=str)
