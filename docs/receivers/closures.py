"""Stores closures in a table, if signed by a key of their machine (docs/upstream.md)."""

import json
import sqlite3
import time
from pathlib import Path

from common.wire.calendar_closure import CalendarEvent, is_calendar, read_calendar
from common.wire.closure import proves_itself, read_closure, read_trial
from common.wire.errors import BadEvent
from common.wire.keys import verifying_key
from common.wire.signing import verify

TABLES = """
CREATE TABLE IF NOT EXISTS shop (nim TEXT PRIMARY KEY, since REAL);
CREATE TABLE IF NOT EXISTS closure (
    nim TEXT, mode TEXT, z INTEGER, id TEXT, at TEXT, total INTEGER, unexplained INTEGER, moved INTEGER, counted INTEGER,
    ledger TEXT, epoch INTEGER, previous TEXT, head TEXT, came REAL, event TEXT, PRIMARY KEY (id, head));
CREATE INDEX IF NOT EXISTS closure_z ON closure (nim, mode, z);
CREATE TABLE IF NOT EXISTS calendar (
    nim TEXT, mode TEXT, kind TEXT, period TEXT, id TEXT, total INTEGER, head TEXT, came REAL, event TEXT, PRIMARY KEY (id, head));
CREATE TABLE IF NOT EXISTS quarantine (came REAL, place TEXT PRIMARY KEY, why TEXT);
"""


def open_table(path="closures.sqlite3", keys="keys.json"):
    """Opens the table, and the file with the keys of each machine: {"EL02000015-1": ["whpk_…", "U…", "whsec_…"]}."""
    shop_keys = {
        nim: [verifying_key(line) for line in lines] for nim, lines in json.loads(Path(keys).read_text()).items()
    }
    table = sqlite3.connect(path)
    table.executescript(TABLES)
    with table:
        table.executemany("INSERT OR IGNORE INTO shop VALUES (?, ?)", [(nim, time.time()) for nim in shop_keys])
    return table, shop_keys


def take(table, keys, headers, body, subject=None):
    """Stores one closure of a day, month or year; of `mcfd upstream test` it checks the signature alone. Raises
    BadEvent or NotSigned; then nothing is stored."""
    trial = read_trial(body)
    event = trial or (read_calendar(body) if is_calendar(body) else read_closure(body))
    z = event.data
    # Without a time limit: a repeated closure is detected by its id, so a replay gains nothing.
    verify(keys.get(z.nim, []), headers, body, now=time.time(), window=None)
    # The subject has the NIM's suffix at the time of the credentials; a later activation changes it.
    machine = z.nim.partition("-")[0]
    is_its_own = subject is None or subject.removesuffix(".closure").partition("-")[0] == f"mcf.{machine}"
    if headers["webhook-id"] != event.id or not is_its_own:
        raise BadEvent("id", "is not what was signed or where it was sent")
    if trial:
        return
    if isinstance(event, CalendarEvent):
        row = (z.nim, z.mode, z.kind, z.period, event.id, z.total_ttc, z.chain_head, time.time(), body.decode())
        store(table, "calendar", row)
        return
    if z.body and not proves_itself(z):
        raise BadEvent("data.chain_head", "is not the hash of this closure")
    opening, now = z.opening_counters, z.mcf_counters
    moved = now.fvc + now.frc - opening.fvc - opening.frc if opening else None
    row = (
        z.nim,
        z.mode,
        z.z_number,
        event.id,
        event.time,
        z.total_ttc,
        z.unexplained,
        moved,
        z.certs_count + z.unexplained,
    )
    row += (z.ledger_id, z.epoch, z.previous_chain_head, z.chain_head, time.time(), body.decode())
    store(table, "closure", row)


def store(table, name, row):
    table.execute(f"INSERT OR IGNORE INTO {name} VALUES ({', '.join('?' * len(row))})", row)


def put_aside(table, place, why):
    """Notes an invalid message: its place in the stream and the reason."""
    table.execute("INSERT OR IGNORE INTO quarantine VALUES (?, ?, ?)", (time.time(), place, str(why)))
