"""Log lines: one event with its values, as `logfmt` for people and journals; nothing of a closure's content."""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    # What libraries say of themselves: their warnings, and no line for each request.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="level=%(levelname)s logger=%(name)s %(message)s"
    )
