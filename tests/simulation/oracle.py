"""What must hold, whatever happened: the machine's own log against what tills were told and what the ledger holds."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise

import msgspec
from simulation import exemptions as exempt
from simulation.box import Box
from simulation.drawn.events import by_total
from simulation.exemptions import MOMENT
from simulation.world import HALF, World

from common.wire.closure import read_closure
from daemon.core.audit import key_hash_of
from daemon.core.invoice.invoice import CREDITS
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Closure
from daemon.core.ledger.outage import Outage
from daemon.core.machine.state import short_nim
from daemon.core.report.receipt import Receipt, receipt
from daemon.store.maintenance.verify import verify
from daemon.store.outbox import _waiting as waiting_closures
from daemon.store.tables.events import UPSTREAM
from daemon.store.tables.meta import read_meta
from daemon.upstream.options import compose
from headquarters.core.checks import alone, pair, record_of
from headquarters.core.wording import Fact
from simulator.machine.fiscal_memory import CertifiedInvoice


class Expectations:
    """What tills know of each number, held against the machine in the moment in which they are told it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.codes: dict[str, str] = {}
        self.sales: dict[str, tuple[str, int]] = {}
        """Of what was certified: how a credit note names it, and its total."""
        self.z: dict[tuple[str, int], str] = {}
        self.keys_of_z: dict[str, str] = {}
        self.lost: set[str] = set()
        """What the machine certified and a ledger that was put back does not know."""
        self.receipts: dict[str, bytes] = {}
        """As each number's till was first told it."""
        self.keys: dict[str, str] = {}
        """Under which key each number was certified."""
        self.owed_a_question = False
        """A ledger was put back that lacks what the machine counted: nothing may be certified before an operator was asked."""
        self._put_back_at = 0.0
        self._under_way: set[str] = set()
        self._is_put_back = False
        self._is_pair_unknown = False
        self.taken_over: list[tuple[int, str]] = []
        """Of each decision on an older ledger: how many the machine had certified, and the number of its last invoice."""
        self.calendar: dict[tuple[str, str, int], str] = {}
        """The closure of a month or a year that was given each number, by machine and kind."""
        self.is_blank = False
        """It was that of a machine that has certified nothing."""
        self.may_be_nonsense = "nonsense" in world.faults
        """Whether the machine has been given a reason to disagree with us."""
        self.limits: dict[str, float] = {}
        """After which time (seconds of the loop) a number that a till outside sells is not begun any more."""
        self.errs = 0
        """How many of the next decisions will be wrong."""
        self.wrong: Counter[str] = Counter()
        """How often a person decided on a number against the facts."""
        self.over_keys: set[str] = set()
        """Of sales that waited, and were refused or taken back: none is certified under it any more."""
        self.twin_keys: set[str] = set()
        """With which another till comes as well."""
        self.taxpayers: dict[str, str] = {}
        """Whose each number is: its till has a key of that one alone."""
        self.never: set[str] = set()
        """A till outside was told at the end that its number was not certified, and will not be."""
        self.other: World | None = None
        """The spare of its machine, or the machine of the spare: what counts is both together."""
        self.unnumbered: set[str] = set()
        """What stands for the numbers of sales that the box gives them to (`by_total`)."""
        self._asking: Counter[str] = Counter()
        self._unknown: set[str] = set()

    @property
    def last_z(self) -> int:
        own = short_nim(self.world.nim)
        return max((z_number for nim, z_number in self.z if nim.startswith(own)), default=0)

    def on_machine(self, number: str) -> list[CertifiedInvoice]:
        return [e for world in self.worlds for e in _ours(world) if number in (e.number, by_total(e.total))]

    def name_of(self, number: str, total: int) -> str:
        """Of a sale whose till sent no number, the one that stands for it."""
        return by_total(total) if by_total(total) in self.unnumbered else number

    def taxpayer_of(self, entry: CertifiedInvoice) -> str:
        """Empty for an invoice of no till of this machine."""
        return self.taxpayers.get(self.name_of(entry.number, entry.total), "")

    @property
    def worlds(self) -> list[World]:
        return [self.world, *([self.other] if self.other else [])]

    @contextmanager
    def asking(self, number: str) -> Iterator[None]:
        self._asking[number] += 1
        try:
            yield
        finally:
            self._asking[number] -= 1

    def pending(self) -> set[str]:
        """Numbers of which somebody does not know what became of them."""
        return self._unknown | {number for number, tills in self._asking.items() if tills}

    def is_abandoned(self, number: str) -> bool:
        """Its till does not ask any more, since what it would hear is about a ledger that is gone; or it asks, and hears what a person has decided against
        the facts."""
        return exempt.is_lost(number, self.lost) or bool(self.wrong[number])

    def is_time_for_error(self, number: str, total: int) -> bool:
        """Whether a person who decides on that sale now is wrong."""
        if not self.errs:
            return False
        self.errs -= 1
        self.wrong.update((number, by_total(total)))
        return True

    def knows_nothing_of(self, number: str) -> bool:
        return number not in self._unknown and number not in self.codes and not self._asking[number]

    def a_sale(self, pick: float) -> tuple[str, int] | None:
        """`pick` from 0 to 1: from the oldest to the newest."""
        sales = list(self.sales.values())
        return sales[min(int(pick * len(sales)), len(sales) - 1)] if sales else None

    def was_put_back(self, sales: Mapping[str, set[tuple[str, int]]], under_way: set[str], *, vanished: bool) -> None:
        """The ledger is another one now, which holds these numbers and totals by the state of their attempts. Those `under_way` a machine may still
        have in hand."""
        fiscal = self.world.session.machine.fiscal
        log = fiscal.log
        named = {state: {self.name_of(*sale) for sale in found} for state, found in sales.items()}
        whole = named.get("certified", set())
        stored, begun = whole | named.get("adopted", set()), named.get("begun", set()) | named.get("disputed", set())
        certified = Counter(self.name_of(entry.number, entry.total) for entry in log)
        settled = set(self.lost)
        if self.other is None:  # what an older ledger lacked, the one that gave way to it has
            self.lost -= {name for name in whole if certified[name] == 1} - self.pending()
        self.lost |= (set(certified) - whole) | self.pending()
        self.is_blank = not stored
        missing = (
            {self.name_of(entry.number, entry.total) for entry in log if not entry.foreign} - stored - begun - settled
        )
        missing -= set(self.wrong)  # no copy had those
        # Where the ledger is gone, only what the machine still remembers tells of it; one that has adopted lacks what it was asked about.
        self.owed_a_question = bool(missing) and not named.get("adopted") and (not vanished or fiscal.last is not None)
        self._put_back_at, self._under_way = self.world.box.loop.now, under_way
        self._is_put_back = True
        self._is_pair_unknown = exempt.pair_is_unknown(self.world, vanished=vanished)
        self.keys_of_z.clear()
        self.world.blame("an older ledger")
        self.world.was_restored = True

    def begin_decision(self) -> None:
        """An operator decides on what the older ledger lacks: until now neither machine of a pair has certified anything but what it was sent before."""
        early = [
            f"{world.nim} {entry.number}"
            for world in ([self.world] if self._is_pair_unknown else self.worlds)
            for at, entry in world.certified
            if self.owed_a_question and at > self._put_back_at
            if self.name_of(entry.number, entry.total) not in self._under_way
        ]
        assert not early, f"certified before the question: {', '.join(early)}"
        self.owed_a_question = False
        if self._is_put_back:
            fiscal = self.world.session.machine.fiscal
            self.taken_over.append((len(fiscal.log), fiscal.last.number if fiscal.last else ""))

    def note_calendar(self, reports: Sequence[tuple[str, str, int, str]]) -> None:
        """What a ledger has closed of months and years."""
        for nim, kind, number, report in reports:
            assert self.calendar.setdefault((nim, kind, number), report) == report, (
                f"{kind} {number} of {nim} was given twice"
            )

    def unknown(self, number: str) -> None:
        self._unknown.add(number)

    def nothing(self, number: str) -> None:
        """A till is told that nothing was certified."""
        if self._asking[number] > 1:
            return
        self._unknown.discard(number)
        if not (self.is_abandoned(number) or self._is_pair_unknown):  # of the machine that the box knows
            assert not self.on_machine(number), (
                f"{number}: the till was told that nothing was certified, the machine has it"
            )

    def certified(self, record: Record) -> None:
        """A till is told a certification, whether it is its own or that of an earlier request for the number."""
        number = self.name_of(record.number, record.total_ttc)
        self._unknown.discard(number)
        if self.is_abandoned(number):
            return
        found = self.on_machine(number)
        if self._is_pair_unknown and len(found) > 1:  # once on each machine, of which the box knows one
            assert all(sum(each.code in world.names for each in found) <= 1 for world in self.worlds), number
            return
        assert len(found) == 1, f"{number}: the till was told a certification, the machine has {len(found)}"
        expected = record.code
        is_reported = expected == found[0].code or exempt.code_was_reported(self.world, expected)
        assert is_reported, f"{number}: another code than the machine's"
        assert record.total_ttc == found[0].total, f"{number}: {record.total_ttc} told, {found[0].total} certified"
        before = self.codes.setdefault(number, expected)
        assert before == expected, f"{number}: two codes told"
        if not record.invoice.items:
            return  # an operator has entered it from the machine's paper
        paper = receipt(record)
        assert self.receipts.setdefault(number, msgspec.json.encode(paper)) == msgspec.json.encode(paper), (
            f"{number}: another receipt than at first"
        )
        named = any(paper.nim == world.names.get(found[0].code) for world in self.worlds)
        named = named or exempt.name_is_another(self.world, record, paper, found[0])
        assert named, f"{number}: its receipt names {paper.nim}-{paper.fvc}"
        if record.type == "FV":
            self.sales.setdefault(number, (f"{paper.nim}-{paper.fvc}", record.total_ttc))

    def certified_outside(self, expected: Receipt) -> None:
        """A till outside is told a receipt: the same as those in the shop."""
        number = expected.invoice_number
        self._unknown.discard(number)
        if self.is_abandoned(number):
            return
        found = self.on_machine(number)
        assert len(found) == 1, f"{number}: the till outside was told a certification, the machine has {len(found)}"
        is_reported = expected.code_secef == found[0].code or exempt.code_was_reported(self.world, expected.code_secef)
        assert is_reported, f"{number}: another code than the machine's"
        assert expected.total_ttc == found[0].total, f"{number}: {expected.total_ttc} told, {found[0].total} certified"
        before = self.codes.setdefault(number, expected.code_secef)
        assert before == expected.code_secef, f"{number}: two codes told"
        text = msgspec.json.encode(expected)
        assert self.receipts.setdefault(number, text) == text, f"{number}: another receipt than at first"

    def closed(self, key: str, closure: Closure, ifu: str) -> None:
        z_number, nim = closure.z_number, f"{short_nim(msgspec.json.decode(closure.body)['nim'])} {ifu}"
        before = self.z.setdefault((nim, z_number), closure.report_id)
        assert before == closure.report_id, f"Z {z_number} was given twice"
        assert self.keys_of_z.setdefault(f"{key} {ifu}", closure.report_id) == closure.report_id, (
            f"the key {key!r} closed two periods"
        )


def _ours(world: World) -> list[CertifiedInvoice]:
    return [entry for entry in world.session.machine.fiscal.log if not entry.foreign]


def nothing_twice(expected: Expectations) -> None:
    """Asked after each history, and of what the machine has alone: no number of ours was certified twice."""
    entries = [entry for world in expected.worlds for entry in _ours(world)]
    names = Counter((entry.number, expected.taxpayer_of(entry)) for entry in entries)  # the box numbers for each anew
    numbers = [(number, count) for (number, _), count in names.items()]
    totals = Counter(by_total(entry.total) for entry in entries)
    numbers += [(name, count) for name, count in totals.items() if name in expected.unnumbered]
    twice = [number for number, count in numbers if count > 1 + expected.wrong[number] and number not in expected.lost]
    twice = [number for number in twice if not exempt.number_was_unknown(expected.world, number, expected.taken_over)]
    assert not twice, f"certified twice: {', '.join(twice)}"


CLOSING, CLOSING_AGAIN = 3.0, 40.0
"""Seconds from when 38h is allowed until the machine has certified, on a line in order and on one where it is asked for its answer again and again."""


def nothing_late(expected: Expectations) -> None:
    """What a till outside gave a limit was begun before it, and what it was told to be over is so."""
    world = expected.world
    slack = CLOSING_AGAIN if world.faults else CLOSING
    certified_at = {entry.number: at for at, entry in world.certified}
    for number, limit in expected.limits.items():
        late = certified_at.get(number, limit) - limit - world.unsure_by.get(number, 0.0)
        assert late <= slack or expected.is_abandoned(number), f"{number}: certified {late:.1f} s after its limit"
    found = [number for number in sorted(expected.never) if expected.on_machine(number)]
    assert not found, f"told that they were never certified, and certified: {', '.join(found)}"


def nothing_lost(expected: Expectations, ledger: Sequence[Record], closures: Sequence[Closure]) -> None:
    """At the end, with everything healed and the last Z made."""
    world = expected.world
    log = [
        entry
        for entry in world.session.machine.fiscal.log
        if not entry.foreign and not expected.is_abandoned(expected.name_of(entry.number, entry.total))
    ]
    rows = [
        record
        for record in ledger
        if record.invoice.items and not expected.is_abandoned(expected.name_of(record.number, record.total_ttc))
    ]
    # What was begun in a copy is entered when it is decided; and each taxpayer has a book.
    is_out_of_order = (world.was_restored and world.decided) or len(set(expected.taxpayers.values())) > 1
    if is_out_of_order:
        log.sort(key=lambda entry: (entry.number, entry.total))
        rows.sort(key=lambda record: (record.number, record.total_ttc))
    counters = _own_counter if exempt.other_counter_is_untold(world) else _both_counters
    machine = [(entry.number, entry.total, *counters(entry.type, entry.fvc, entry.frc)) for entry in log]
    ours = [
        (record.number, record.total_ttc, *counters(record.type, record.counters.fvc, record.counters.frc))
        for record in rows
        if record.counters
    ]
    if is_out_of_order:  # paper tells the counter of its kind alone
        ours, machine = [each[:2] for each in ours], [each[:2] for each in machine]
    assert ours == machine, _difference(ours, machine)
    assert all(exempt.tc_is_later(record, entry) for record, entry in zip(rows, log, strict=True)), "TC"
    codes = {(entry.number, entry.total): entry.code for entry in log}  # two taxpayers may have one number
    for record in rows:
        code = codes[record.number, record.total_ttc]
        assert record.code == code or exempt.code_was_reported(world, record.code), record.number
    for number in expected.codes:
        assert expected.on_machine(number) or expected.is_abandoned(number), f"{number}: told, and not on the machine"
    has_question = not expected.owed_a_question or exempt.reset_left_nothing(world, is_blank=expected.is_blank)
    assert has_question, "a ledger that lacks certifications went on without a question"
    _in_one_period_each(ledger, closures)
    if not exempt.periods_are_mixed(world):
        _in_time(world, ledger, closures)
    if not exempt.strangers_are_uncounted(world):
        assert sum(z.unexplained for z in closures) == world.foreign, "somebody else's invoices are not counted right"
    _time_is_right(world, ledger, closures)


def _both_counters(_: str, fvc: int, frc: int) -> tuple[int, ...]:
    return fvc, frc


def _own_counter(kind: str, fvc: int, frc: int) -> tuple[int, ...]:
    return (frc if kind in CREDITS else fvc,)


def _difference(ours: Sequence[object], machine: Sequence[object]) -> str:
    at = next((at for at, pair in enumerate(zip(ours, machine, strict=False)) if pair[0] != pair[1]), len(ours))
    return f"the ledger's {at + 1}. certification: {ours[at : at + 1]}, the machine's: {machine[at : at + 1]}"


def _in_one_period_each(ledger: Sequence[Record], closures: Sequence[Closure]) -> None:
    entered = [record for record in ledger if record.invoice.items]
    assert sum(z.certs_count for z in closures) == len(entered), "the closures do not add up to the certifications"
    net = sum(-r.total_ttc if r.type in CREDITS else r.total_ttc for r in entered)
    assert sum(z.total_ttc for z in closures) == net, "the closures' totals do not add up"
    assert len({z.report_id for z in closures}) == len(closures)


def _in_time(world: World, ledger: Sequence[Record], closures: Sequence[Closure]) -> None:
    """What the machine had counted when a Z was made is in that Z, or in one before."""
    counted = {entry.code: entry.tc for entry in world.session.machine.fiscal.log}
    for z in closures:
        late = [
            r.number for r in ledger if r.seq > z.last_seq and counted.get(r.code, z.counters.tc + 1) <= z.counters.tc
        ]
        assert not late, f"Z {z.z_number} counts, and does not hold: {', '.join(late)}"


def credits_fit(stored: Sequence[Record]) -> None:
    """Of all machines of the box together; without credit notes that an older ledger did not know when others were checked. A person who is wrong may
    have entered another sale with the same counter."""
    credited, originals = Counter[str](), Counter[str]()
    for record in stored:
        if record.type in CREDITS:
            credited[record.invoice.reference] += record.total_ttc
        elif record.type == "FV" and record.counters:
            originals[f"{record.nim}-{record.counters.fvc}"] += record.total_ttc
    for reference, total in credited.items():
        original = originals.get(reference)
        assert original is None or total <= original, f"credit notes of {total} on {reference}, which was {original}"


def _time_is_right(world: World, ledger: Sequence[Record], closures: Sequence[Closure]) -> None:
    times = [record.ended_at for record in ledger] + [closure.created_at for closure in closures]
    latest = exempt.latest_time(world)
    assert max(times, default=0) <= latest, "the book's time was moved ahead"
    if not world.wrong_box_times:
        assert min(times, default=latest) >= int(world.box.began.timestamp() * 1000) - MOMENT, (
            "the book's time went back"
        )


def outages_are_right(expected: Expectations, register: Sequence[Outage], ledger: Sequence[Record]) -> None:
    """Numbered from 1, none within another; none lasts over a certification, nor at the end; each till that was refused, was so in one."""
    world = expected.world
    assert [outage.number for outage in register] == [*range(1, len(register) + 1)], (
        "outages are not numbered in their order"
    )
    are_apart = all(one.until <= other.since for one, other in pairwise(register))
    assert are_apart or exempt.repair_is_to_the_hour(world), f"two outages at once: {register}"
    assert not any(outage.is_open for outage in register if outage.reason != "blocked"), (
        "an outage at the end, with the machine in service"
    )
    for outage in register:
        over = [
            r.number
            for r in ledger
            if r.line_ms
            and r.begun_at <= r.ended_at  # a repair of the time moves the end alone: when it began is not known then
            and outage.since < min(r.begun_at, r.ended_at - r.line_ms)
            and r.ended_at < (outage.until or r.ended_at + 1)
        ]
        assert not over, (
            f"{outage} lasts over certifications: {[(r.number, r.begun_at, r.ended_at, r.line_ms) for r in ledger if r.number in over][:2]}"
        )
    if not exempt.outages_are_unsure(world):
        for at, moment in world.refusals:
            writable = max((end for begin, end in world.disk_faults if begin <= moment < end), default=moment)
            is_lost = any(moment <= end < writable + NOTED_WITHIN for end in world.ends)
            within = any(o.since - MOMENT <= at <= (o.until or at) + MOMENT for o in register)
            assert within or is_lost, f"a till was refused at {at}, in no outage"


MAX_CLOSURES = 1000
NOTED_WITHIN = 5.0
"""Seconds in which a refusal is in the register, unless the daemon or its disk ends before."""


CERTIFIED_KEYS = """SELECT number, key_hash, substr(nim, 1, 10) FROM idempotency JOIN certification ON certification.id = attempt_id
    JOIN book ON book.id = certification.book_id WHERE state = 'certified'"""


EVENT_MISMATCHES = """SELECT type, id FROM (
        SELECT 'cert.issued' AS type, book_id, id FROM certification WHERE state = 'certified'
            AND NOT EXISTS (SELECT 1 FROM settlement WHERE attempt_id = certification.id AND decision = 'adopted')
        UNION ALL SELECT 'closure.created', book_id, z_number FROM closure) AS made
    WHERE (SELECT count(*) FROM event WHERE (event.type, book_id, ref_id) = (made.type, made.book_id, made.id)) <> 1
       OR (SELECT count(*) FROM outbox WHERE (outbox.type, book_id, ref_id) = (made.type, made.book_id, made.id)) <> (made.type = 'closure.created')"""


def _check_reading(connection: sqlite3.Connection, everybody: Sequence[Expectations]) -> None:
    """To screens and webhooks each certification and closure; to headquarters each closure, in which it finds nothing but strangers' invoices."""
    wrong = connection.execute(EVENT_MISMATCHES).fetchall()
    assert not wrong, f"not told once: {wrong}"
    found: list[Fact] = []
    for book in connection.execute("SELECT DISTINCT nim, mode FROM book").fetchall():
        sent = waiting_closures(connection, UPSTREAM, *book, MAX_CLOSURES)
        records = [record_of(read_closure(compose(each)).data) for each in sent if each.kind == "Z"]
        found += [fact for record in records for fact in alone(record) if fact.kind != "unexplained"]
        records.sort(key=lambda record: (record.ledger_id, record.z))  # each taxpayer's has an id of its own
        together = (each for each in pairwise(records) if each[0].ledger_id == each[1].ledger_id)
        found += [fact for one, other in together if other.z == one.z + 1 for fact in pair(one, other)]
    # What a person has entered against the facts the machine has not counted.
    is_true = any(
        # Or what a reset machine has printed, of which no counters are known (seed 9809509).
        each.wrong or (each.world.was_reset and (exempt.reset_has_no_name(each.world) or each.world.entered_as_printed))
        for each in everybody
    )
    assert is_true or not found, f"headquarters finds {found}"


def sound(box: Box, everybody: Sequence[Expectations]) -> None:
    with closing(sqlite3.connect(box.ledger)) as connection:
        assert not read_meta(connection, HALF), "half of a failed job is stored"
        # Tills of two machines may have one key; those of a pair share theirs.
        keys = {
            (key_hash_of(key), short_nim(world.nim))
            for machine in everybody
            if not machine.world.was_restored
            for key in machine.over_keys - machine.twin_keys
            for world in machine.worlds
        }
        late = [number for number, *key in connection.execute(CERTIFIED_KEYS) if tuple(key) in keys]
        assert not late, f"certified after it was refused or taken back: {', '.join(late)}"
        _check_reading(connection, everybody)
    findings = verify(box.ledger)
    assert findings.clean, findings.problems
