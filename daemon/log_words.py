"""The daemon's log for people: the meaning of each of its events, and their values."""

import json
from collections.abc import Mapping
from typing import Any, Final

from common.language import Language, Text

EVENTS: Final = {
    "daemon.started": Text("mcfd started"),
    "daemon.stopping": Text("mcfd is stopping"),
    "daemon.stopped": Text("mcfd stopped"),
    "daemon.stopped_at_once": Text("mcfd was stopped a second time, and ended at once"),
    "start.refused": Text("the start was refused"),
    "reload.done": Text("the configuration was read again"),
    "reload.refused": Text("the new configuration was refused; the old one goes on"),
    "reload.failed": Text("mcfd failed at reading the configuration again"),
    "reload.part_failed": Text("mcfd failed at a part of the new configuration"),
    "reload.put_off": Text("a part of the new configuration waits until the disk takes something again"),
    "reload.finished": Text("the rest of the new configuration is in force"),
    "reload.needs_restart": Text("some of the new configuration counts after a restart only"),
    "request.answered": Text("request"),
    "request.failed": Text("mcfd failed at a request"),
    "restore.done": Text("a copy was put back in the ledger's place"),
    "restore.unneeded": Text("no copy was put back: the ledger is sound and has all of it"),
    "restore.failed": Text("a copy could not be put back; the ledger is what it was"),
    "page.failed": Text("mcfd failed at a screen of the page"),
    "page.command_failed": Text("a command of the page failed"),
    "login.failed": Text("a login failed: wrong name or password"),
    "login.held_back": Text("too many wrong passwords from one address"),
    "certification.ended": Text("certification"),
    "sale.deferred": Text("a sale was taken on, to be certified later"),
    "sale.put_off": Text("a sale that waits could not be certified yet"),
    "sale.failed": Text("mcfd failed at a sale that waits; it is tried again"),
    "sale.refused": Text("the machine refused a sale that waited"),
    "sale.withdrawn": Text("a sale that waited was taken back"),
    "sale.released": Text("a doubtful sale waits again"),
    "closure.created": Text("Z closure"),
    "calendar.closed": Text("month or year closed"),
    "closure.put_off": Text("the period of a machine's former taxpayer could not be closed yet"),
    "closure.gap": Text("a Z closure is missing from the machine's count"),
    "line.up": Text("the machine answers"),
    "line.down": Text("the machine is gone"),
    "line.retry": Text("the command was sent again"),
    "line.stale_reply": Text("the machine answered twice, or too late; that answer was dropped"),
    "line.garbage": Text("what came from the machine could not be read"),
    "line.out_of_turn": Text("the machine sent something that nothing had asked for"),
    "line.ended": Text("the line to the machine has ended"),
    "line.failed": Text("mcfd failed at the line to a machine; it begins again"),
    "machine.attention": Text("a machine needs a decision"),
    "machine.activated": Text("the machine was activated anew"),
    "machine.test_mode": Text("the machine works in test mode: what it certifies has no fiscal value"),
    "machine.rates_changed": Text("the machine has other tax rates"),
    "machine.unexplained": Text("another program certified on the machine"),
    "machine.reconciled": Text("ledger and machine agree again"),
    "machine.habit": Text("the machine has a habit of its own"),
    "attempt.failed": Text("a certification failed"),
    "certification.slow": Text("a certification took longer than usual"),
    "certification.unknown": Text("the outcome of a certification is not known yet"),
    "recover.settled": Text("a certification in doubt was settled"),
    "certification.found": Text("a certification whose answer was lost was found on the machine"),
    "certification.not_stored": Text("the end of a certification could not be written down; it is tried again"),
    "clock.drift": Text("the box's clock is off"),
    "clock.source": Text("the box's clock is not to be relied on; the time comes from elsewhere"),
    "clock.synchronised": Text("the box's clock was set"),
    "taxserver.alert": Text("no contact to the tax server for more than 7 days"),
    "printer.failed": Text("a document was not printed"),
    "machine.taken_back": Text("the configuration has no spare for a machine any more: it certifies for itself again"),
    "outage.notified": Text("it was noted who was notified of an outage"),
    "calls.listening": Text("requests from outside the shop are answered"),
    "calls.not_listening": Text("requests from outside the shop cannot be answered"),
    "calls.failed": Text("mcfd failed at requests from outside the shop; it begins again"),
    "call.unreadable": Text("a request from outside the shop could not be read"),
    "call.not_sealed": Text("a request from outside the shop was not encrypted for this box"),
    "outage.begun": Text("the machine cannot certify: an outage is in the register"),
    "outage.ended": Text("the machine can certify again: the outage is over"),
    "outage.failed": Text("mcfd failed at the register of outages; it tries again"),
    "outage.not_stored": Text("the register of outages could not be written"),
    "nats.lost": Text("the connection to nats-server is lost; it is opened again"),
    "nats.error": Text("headquarters' nats-server refused something"),
    "nats.callback_failed": Text("mcfd failed at a message from headquarters"),
    "nats.outdated": Text("headquarters' nats-server is an old version with known vulnerabilities"),
    "disk.failed": Text("the disk failed to store something; mcfd ended, and begins again with a copy of the ledger"),
    "disk.failing": Text("the disk fails again and again: it has to be replaced"),
    "ledger.copied": Text("after an error of the disk the ledger was copied into a new file"),
    "ledger.write_failed": Text("the ledger could not be written"),
    "ledger.tidied": Text("what the ledger need not keep was deleted"),
    "certificate.renewed": Text("the certificate was renewed"),
    "certificate.not_renewed": Text("the certificate could not be renewed"),
    "front.ended": Text("HAProxy ended; it is started again"),
    "front.unreachable": Text("HAProxy does not answer"),
    "recording.stopped": Text("the line is not recorded any more: the disk is nearly full"),
    "recording.goes_on": Text("the line is recorded again"),
    "cash.moved": Text("cash put in or taken out"),
    "aggregate.failed": Text("the totals could not be brought up to date; they will be at the next try"),
    "audit.head": Text("the audit log up to here, to be compared with a copy elsewhere"),
    "configuration.not_noted": Text("a changed configuration could not be noted in the audit log"),
    "clock.book_ahead": Text("the ledger is ahead of the box's clock"),
    "clock.not_synchronised": Text("the box's clock is not set by the network"),
    "closure.requested": Text("headquarters requested closures again"),
    "event.gone": Text("an event is about something that is gone"),
    "event.not_stored": Text("an event could not be written down"),
    "event.unreadable": Text("an event cannot be read"),
    "ledger.not_tidied": Text("what the ledger need not keep could not be deleted"),
    "sandbox.not_tidied": Text("what the test machine need not keep could not be deleted"),
    "machine.left_open": Text("an invoice may still be open at the machine; it is cancelled at the next contact"),
    "machine.other_taxpayer": Text("the machine belongs to another taxpayer now"),
    "outbox.unreadable": Text("what waits for headquarters could not be read"),
    "presence.accepted": Text("headquarters hears this box"),
    "presence.failed": Text("mcfd failed at its sign of life to headquarters; it tries again"),
    "replication.failed": Text("mcfd failed at a delivery; it tries again"),
    "presence.refused": Text("headquarters does not hear this box"),
    "ready.no_upstream_figures": Text("what waits upstream could not be counted"),
    "recover.put_off": Text("a certification in doubt could not be settled yet"),
    "settle.put_off": Text("a decision could not be carried out yet"),
    "stream.broken_off": Text("a long answer broke off"),
    "stream.not_read": Text("a long answer was cut: its client did not read it"),
    "stream.access_ended": Text("a download or a stream was broken off: its key or its login has ended"),
    "taxserver.alert_not_stored": Text("a warning of the tax server could not be written down"),
    "taxserver.unreadable": Text("the machine's word on the tax server cannot be read"),
    "command.done": Text("a command of the box changed the ledger"),
    "control.unavailable": Text("commands cannot change anything beside this daemon: its socket could not be made"),
    "command.failed": Text("mcfd failed at a command of the box"),
    "uses.not_written": Text("when keys were used last could not be written down"),
    "webhook.forgotten": Text("events for a webhook that is gone were dropped"),
    "webhook.not_resettled": Text("what waits for webhooks could not be sorted anew"),
    "webhook.renamed": Text("what waited for a webhook waits under its new name"),
    "worker.close_incomplete": Text("mcfd stopped before everything of a machine had ended"),
}
"""An event without a text is shown by its own name."""
LEVELS: Final = {"warning": Text("WARNING"), "error": Text("ERROR"), "critical": Text("ERROR")}
HEAD_FIELDS: Final = frozenset({"time", "level", "event"})


def words(event: Mapping[str, Any], language: Language) -> str:
    name = str(event.get("event", ""))
    text = EVENTS.get(name)
    return text.in_language(language) if text else name


def level(event: Mapping[str, Any], language: Language) -> str:
    """Empty for normal events."""
    text = LEVELS.get(str(event.get("level", "")))
    return text.in_language(language) if text else ""


def values(event: Mapping[str, Any]) -> str:
    return "  ".join(
        f"{key}={_value(value)}" for key, value in event.items() if key not in HEAD_FIELDS and value is not None
    )


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
