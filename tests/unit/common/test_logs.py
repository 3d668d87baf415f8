import io
import json
import logging
import os
import warnings
from pathlib import Path

import msgspec
import pytest
import structlog

from common import logs
from common.language import Text

KEY = "ak_live_" + "a1B2" * 9 + "zz"
SECRET = "whsec_c2VjcmV0+/c2VjcmV0=="  # noqa: S105  made up


class Customer(msgspec.Struct):
    name: str


@pytest.fixture
def out():
    """The log on a stream of its own; what was configured before is put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logs.TALKATIVE}
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    yield stream
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("form", ["json", "console"])
def test_keys_and_secrets_do_not_get_through(out, form):
    """Whatever carries one loses it; a record is named by its class only, and tracebacks show no local variables."""
    logs.configure("info", form, out)
    log = structlog.get_logger()
    log.info(
        "x", key=KEY, deep={"a": [SECRET, {"b": KEY.encode()}]}, headers=[(b"authorization", f"Bearer {KEY}".encode())]
    )
    log.info(KEY, authorization="Basic Zm9v", cookie="s=1", more={"cookie": "s=1"})
    customer = Customer("Awa Ouedraogo")
    try:
        int(f"no such key {KEY}, secret {SECRET}, Bearer abc.def")
    except ValueError:
        log.exception("failed", given=customer, body=b"Awa", customer="Awa", path=Path("/x"))
        logging.getLogger("uvicorn.error").exception("failed with %s", KEY)
    result = out.getvalue()
    for secret in (KEY, KEY[8:], SECRET, SECRET[6:], "Zm9v", "s=1", "abc.def", "Awa"):
        assert secret not in result
    assert result.count(logs.WITHHELD) >= 12
    for visible in ("ak_live_", "<Customer>", "/x"):
        assert visible in result


def test_the_standard_library_comes_out_of_the_same_door(out):
    """Libraries and warnings are lines of the same shape, with the logger's name."""
    logging.getLogger("a.library").info("listening on %s", "127.0.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    first, second = lines(out)
    assert (first["event"], first["logger"], first["level"]) == ("listening on 127.0.0.1", "a.library", "info")
    assert (second["logger"], second["level"]) == ("py.warnings", "warning")


def test_the_level_changes_at_once(out):
    """A logger already in use follows `set_level`, as SIGHUP needs."""
    log = structlog.get_logger()
    log.info("first")
    log.debug("too light")
    logs.set_level("error")
    log.warning("too light now")
    log.error("second")
    log.critical("third")
    logs.set_level("debug")
    log.debug("fourth")
    assert [line["event"] for line in lines(out)] == ["first", "second", "third", "fourth"]


def test_a_log_that_is_gone_stops_nobody(out):
    """A closed stderr loses the line and raises nothing; neither does a value that JSON cannot carry: the line to a machine ended so. A text for people is English."""
    log = structlog.get_logger()
    log.info("odd", half="\udc80", many=2**70, number=float("nan"))
    log.warning("line.down", reason=Text("{port} hung up", port="/dev/mcf"))
    log.warning("line.down", reason=Text("the machine's counters went down"))
    odd, *others = lines(out)
    assert odd["many"] == 2**70
    assert [line["reason"] for line in others] == ["/dev/mcf hung up", "the machine's counters went down"]
    out.close()
    log.info("lost")


def test_the_page_remembers_what_went_out_without_its_secrets(out):
    """A bounded number of the newest events; requests and certifications that went well do not push the rest out."""
    logs.RECENT.clear()
    log = structlog.get_logger()
    log.warning("page.failed", detail=f"Bearer {KEY}", secret=SECRET)
    log.info("request.answered", route="/")
    log.info("certification.ended", outcome="certified")
    log.warning("certification.ended", outcome="refused")
    log.debug("below the level")
    assert [event["event"] for event in logs.RECENT] == ["page.failed", "certification.ended"]
    assert KEY not in str(list(logs.RECENT))
    assert SECRET not in str(list(logs.RECENT))
    for number in range(2 * (logs.RECENT.maxlen or 0)):
        log.info("started", number=number)
    assert len(logs.RECENT) == logs.RECENT.maxlen
    logs.RECENT.clear()


def test_the_journal_is_given_priorities(tmp_path, monkeypatch, out):
    """A line that systemd's journal reads begins with its priority, so that `journalctl -p warning` finds it; any other does not."""
    with (tmp_path / "journal").open("w") as stream:
        for name in ("0:0", f"{os.fstat(stream.fileno()).st_dev}:{os.fstat(stream.fileno()).st_ino}"):
            monkeypatch.setenv("JOURNAL_STREAM", name)
            logs.configure("info", "json", stream)
            log = structlog.get_logger()
            log.info("line.up")
            log.warning("line.down")
            log.error("line.lost")
    begins = [line[:3] for line in (tmp_path / "journal").read_text().splitlines()]
    assert begins == ['{"t'] * 3 + ["<6>", "<4>", "<3>"]
