"""Deliberate mistakes, in the product's functions and in the model's steps, each of which the search has to find: faults of 0.1.0 put back, and others."""

from simulation.patched import Mistake

VERDICT, DECISION, NUMBER = "daemon.core.ledger.verdict", "daemon.core.ledger.decision", "daemon.core.invoice.number"
LAST, STORE, WORK = "daemon.core.ledger.verdict", "exhaustive.store", "exhaustive.work"
WATER, NUMBERS = "exhaustive.water", "daemon.store.maintenance.numbers"

# fmt: off
_TABLE = (
    ("answers lost: sales", "what has no answer was not certified", VERDICT,
     "    now, ours = state.counters, is_last(attempt, state)\n",
     "    return NotCertified()\n"),
    ("answers lost: sales", "counters that moved are ours", VERDICT,
     "    return None if may_be_certified(attempt.type, kind, before, now) else NotCertified()\n",
     "    return _certified_by(state)\n"),
    ("answers lost: sales", "only the machine's last invoice can be entered (N7)", DECISION,
     "            return self._obstacle_to_paper(paper, is_taken=is_taken) if paper else self._obstacle_to_certified()\n",
     "            return self._obstacle_to_certified()\n"),
    ("answers lost: exports", "every machine counts exports in FVC (X2)", VERDICT,
     "    for alone in _TC_ALONE:\n",
     "    for alone in ((),):\n"),
    ("older backups", "a new last invoice says nothing where counters stand (X1)", VERDICT,
     '        is_unknown = last == "new" or',
     "        is_unknown = False and"),
    ("older backups with", "of a ledger that was put back the oldest attempt alone is judged (N3)", VERDICT,
     "    judged = len(unfinished) if is_restored else 1\n",
     "    judged = 1\n"),
    ("older backups", "a ledger that is behind goes on", VERDICT,
     "    if met and not went_down(before, state.counters):\n",
     "    if not went_down(before, state.counters):\n"),
    ("activations", "counters are believed across an activation (N1)", VERDICT,
     "    if activated or went_down(before, now):\n",
     "    if went_down(before, now):\n"),
    ("activations", "a machine without a taxpayer is believed (X7)", WORK,
     "    return bool(world.book.ifu) and not world.machine.is_active\n",
     "    return False\n"),
    ("older backups and activations", "adopt leaves what is begun to recover (N2)", STORE,
     "    for settled in real.judged(begun, plan.settled):\n",
     "    for settled in ():\n"),
    ("numbers alike", "numbers are compared exactly (X3, N4)", NUMBER,
     "    return one == other or number_key(one) == number_key(other)\n",
     "    return one == other\n"),
    ("a ledger of 0.1.0", "the last invoice that was seen before is taken for a new one", LAST,
     '        return "known" if last.code == before.code or (is_alike and last.time == before.time) else "new"\n',
     '        return "new"\n'),
    ("two operators", "a case is decided as it was read (X9)", DECISION,
     "        return self.fingerprint == msgspec",
     "        return True or self.fingerprint == msgspec"),
    ("taxpayers", "another taxpayer goes on in the same book", WORK,
     "    if reading.ifu and world.book.ifu and reading.ifu != world.book.ifu:\n",
     "    if False:\n"),
    ("Z numbers", "the numbers that were given are not brought back (X5)", WATER,
     "    return max(number, water.highest(name(ifu))), question",
     "    return number, question"),
    ("Z numbers", "a second restore answers the question of the first (Y1)", NUMBERS,
     "    if not is_counted_here(marks, name, ledger_id):\n        return new\n",
     "    if not marks.books:\n        return new\n"),
)
# fmt: on

FOUND_BY = tuple((piece, Mistake(0, name, module, old, new)) for piece, name, module, old, new in _TABLE)
