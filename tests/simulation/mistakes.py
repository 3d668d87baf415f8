"""Deliberate mistakes, each of which the simulation has to find: a hole in it would be one that passes.

A mistake is a piece of our own source and what stands in its place. It is put into the running functions (their code objects), and taken out
again; no file is touched. Each once was a fault of ours, was found by the simulation, or is a classic of
such systems.
"""

from collections.abc import Iterable

from simulation.history import played
from simulation.patched import Mistake

ATTEMPT = "daemon.usecases.certification.attempt"
ENTER = "daemon.usecases.certification.enter_invoice"
RECOVER = "daemon.usecases.certification.recover"
CLOSE = "daemon.usecases.reports.close_period"
VERDICT = "daemon.core.ledger.verdict"
WORKER = "daemon.usecases.worker.machine_worker"
ATTEMPTS = "daemon.store.tables.book.attempts"
DEFERRED = "daemon.store.tables.book.deferred"
CALLS = "daemon.app.outward.calls"
BOXES = "relay.boxes"
RENEWAL = "daemon.store.maintenance.renewal"
NUMBERS = "daemon.usecases.certification.numbers"

MISTAKES = (
    Mistake(
        2,
        "38h does not wait for its intent",
        ENTER,
        "        await intent\n        if not worker.attempts.is_way_free(live):\n",
        "        if not worker.attempts.is_way_free(live):\n",
    ),
    Mistake(
        85,
        "38h does not wait for the outcome before it",
        ENTER,
        "            await worker.attempts.way_free(live)\n",
        "            pass\n",
    ),
    Mistake(
        940,
        "a stop forgets what is in doubt (fault 1)",
        "daemon.usecases.worker.attempts",
        '        """Wakes all tasks that wait for news: the daemon stops, or an operator is needed. No phase changes."""\n        for live in self._live.values():\n            live.wake()\n',
        "        for live in list(self._live.values()):\n            live.wake()\n        self._live.clear()\n",
    ),
    Mistake(
        3,
        "recover takes what this process is at (fault 2)",
        RECOVER,
        "for record in begun if not worker.attempts.is_ours(record)]\n",
        "for record in begun]\n",
    ),
    Mistake(
        9,
        "a till that asks again after a start hides its attempt from recover",
        f"{WORKER}s",
        "    for record in worker.unfinished:\n        worker.attempts.doubt(record)\n",
        "",
    ),
    Mistake(
        28,
        "any time is credible (fault 3)",
        "daemon.core.clock",
        "    return max(EARLIEST, clocks.book - SLACK) <= at <= latest(clocks)\n",
        "    return True\n",
    ),
    Mistake(
        2,
        "the machine's clock is believed first (fault 3)",
        "daemon.core.clock",
        "    if clocks.synchronised and clocks.box >= EARLIEST:\n",
        "    if clocks.machine is not None:\n        return _of(clocks, clocks.machine, Source.MACHINE)\n    if clocks.synchronised and clocks.box >= EARLIEST:\n",
    ),
    Mistake(
        8,
        "another activation is another machine (fault 4)",
        "daemon.core.machine.state",
        '    return nim if nim != ledger_nim else ""\n',
        '    return ""\n',
    ),
    Mistake(
        70,
        "an export that moves TC alone was not certified (fault 5)",
        VERDICT,
        "        verdict = _certified_by(state) if may_be_certified(attempt.type, None, before, now) else None\n",
        "        verdict = _certified_by(state) if any(moved) else NotCertified()\n",
    ),
    Mistake(
        41,
        "the numbers that were given are not brought back (fault 6)",
        "daemon.store.maintenance.numbers",
        '    skip_to(connection, book, water.highest(name), source="ledger" + SUFFIX)\n',
        "",
    ),
    Mistake(
        242,
        "the heartbeat does not take over what somebody else did (fault 7)",
        "daemon.usecases.line_events",
        "not worker.attempts.ending and has_news",
        "not worker.attempts.ending and worker.attention",
    ),
    Mistake(
        50,
        "a ledger that vanished begins anew (fault 10)",
        VERDICT,
        "        return vanished(state) if is_lost else from_stored(stored.lost)\n",
        '        return ""\n',
    ),
    Mistake(
        41,
        "a ledger that is behind goes on",
        VERDICT,
        "    if foreign or is_unknown:\n",
        "    if False:\n",
    ),
    Mistake(
        3,
        "what has no answer was not certified",
        VERDICT,
        "    now, ours = state.counters, is_last(attempt, state)\n",
        "    return NotCertified()\n    now, ours = state.counters, is_last(attempt, state)\n",
    ),
    Mistake(
        0,
        "what has no answer was certified",
        VERDICT,
        "    now, ours = state.counters, is_last(attempt, state)\n",
        "    now, ours = state.counters, state.last is not None\n    if ours:\n        return _certified_by(state) or NotCertified()\n",
    ),
    Mistake(
        0,
        "a refusal of 38h is believed",
        ATTEMPT,
        '    refusal = unknown.cause.text if isinstance(unknown.cause, MachineRefused) else ""\n',
        '    refusal = unknown.cause.text if isinstance(unknown.cause, MachineRefused) else ""\n'
        "    if refusal:\n"
        '        record = await worker.ledger.write(attempts.end, job.book, job.id, "refused", refusal, at=worker.now())\n'
        "        worker.attempts.settle([record])\n"
        "        return\n",
    ),
    Mistake(
        3,
        "38h again after a lost line",
        ATTEMPT,
        "    except enter_invoice.OutcomeUnknown as unknown:\n        await _doubt(job, machine, unknown)\n        return None\n",
        "    except enter_invoice.OutcomeUnknown as unknown:\n"
        "        worker.drop(machine, str(unknown))\n"
        "        job.step(Step.UNKNOWN)\n"
        '        await worker.ledger.write(attempts.end, job.book, job.id, "abandoned", "lost", at=worker.now())\n'
        "        worker.attempts.settle([worker.ledger.peek(attempts.find_record, job.book, job.id)])\n"
        "        return None\n",
    ),
    Mistake(
        12,
        "the till is answered before the outcome is durable",
        ATTEMPT,
        "            break\n        except StorageError as error:\n            await _try_again",
        "            break\n        except StorageError as error:\n            record = worker.ledger.peek(attempts.find_record, worker.book, job.id)\n            break\n            await _try_again",
    ),
    Mistake(
        195,
        "an outcome that could not be stored in time is dropped",
        ATTEMPT,
        '        job.worker.spawn(_store(job, *outcome), "store outcome")\n',
        "",
    ),
    Mistake(
        433,
        "an end that could not be stored is dropped",
        ATTEMPT,
        '        job.worker.spawn(_until_stored(job, write), "end attempt")\n',
        "        pass\n",
    ),
    Mistake(
        222,
        "what the machine agreed to in HT mode is not written down",
        ENTER,
        "            await worker.ledger.write(attempts.amend, worker.book, live.id, agreed)\n",
        "",
    ),
    Mistake(
        0,
        "the counters of a certification are not remembered",
        ATTEMPT,
        "    worker.attempts.counters = certified.counters\n",
        "",
    ),
    Mistake(
        0,
        "a till that hangs up takes its invoice with it",
        WORKER,
        "            return await asyncio.shield(task)\n",
        "            return await task\n",
    ),
    Mistake(
        6,
        "a place at the machine is never given back after an error",
        "daemon.usecases.worker.machine_queue",
        "    def __exit__(self, *_: object) -> None:\n        self.leave()\n",
        "    def __exit__(self, kind: object, *_: object) -> None:\n        if kind is None:\n            self.leave()\n",
    ),
    Mistake(
        8,
        "a retry goes out under a new SEQ",
        "bridge.link",
        "            left=current.tries_left,\n        )\n        self._send(current)\n",
        "            left=current.tries_left,\n        )\n"
        "        current.request = current.request._replace(seq=self._next_seq)\n        current.raw = encode(current.request)\n"
        "        self._next_seq = current.request.seq % LAST_SEQ + 1\n        self._send(current)\n",
    ),
    Mistake(
        4,
        "a key is given to whoever comes with it",
        "daemon.usecases.certification.idempotency",
        "    if not call.is_request(fingerprint, (worker.book.nim, worker.configured_nim)):\n        raise KeyReused\n",
        "    pass\n",
    ),
    Mistake(
        2,
        "a key whose first request runs still is not waited for",
        "daemon.usecases.certification.idempotency",
        "        if use is not None:\n            check_same(",
        "        use = None\n        if use is not None:\n            check_same(",
    ),
    Mistake(
        7,
        "credit notes are checked one by one",
        "daemon.core.ledger.original",
        "        return None\n    fits = [each for each in originals if each.claimed + amount - leeway <= each.total_ttc]\n",
        "        return None\n    fits = [each for each in originals if amount - leeway <= each.total_ttc]\n",
    ),
    Mistake(
        0,
        "the closure does not bring in the rest",
        "daemon.store.tables.book.closures",
        "    totals, _ = add_new(connection, book, zone)\n",
        "    totals, _ = add_new(connection, book, zone, 0)\n",
    ),
    Mistake(
        0,
        "the tick counts twice after a crash",
        "daemon.store.tables.book.totals",
        "    write_totals(connection, book.id, totals)\n    return totals, complete\n",
        "    write_totals(connection, book.id, totals)\n    totals.seq -= 1\n    write_totals(connection, book.id, totals)\n    return totals, complete\n",
    ),
    Mistake(
        2,
        "a failed commit is told as a success to those behind it",
        "daemon.store.sqlite.writer",
        "        for _, future in batch:\n            if not future.cancelled():\n                future.set_exception(error)\n",
        "        for at, (_, future) in enumerate(batch):\n            if not future.cancelled():\n                future.set_result(at + 1) if isinstance(error, StorageError) else future.set_exception(error)\n",
    ),
    Mistake(
        2,
        "a commit is not synced",
        "daemon.store.sqlite.connection",
        "        connection.execute(pragma).fetchall()\n",
        "        connection.execute(pragma.replace('FULL', 'NORMAL')).fetchall()\n",
    ),
    Mistake(
        2,
        "the numbers that were given are not synced",
        "daemon.store.sqlite.high_water",
        "            os.fsync(descriptor)\n        finally:\n            os.close(descriptor)\n        part",
        "            pass\n        finally:\n            os.close(descriptor)\n        part",
    ),
    Mistake(
        449,
        "what is renamed is not synced",
        "common.files",
        "        os.fsync(descriptor)\n    finally:\n",
        "        pass\n    finally:\n",
    ),
    Mistake(
        1130,
        "an answer to an earlier 38h is taken for this one's",
        "daemon.machines.adapter",
        "    if closed.tc <= before.tc:\n",
        "    if False:\n",
    ),
    Mistake(
        579,
        "an outcome does not say under which name (26)",
        "daemon.machines.adapter",
        '        nim = closed.nim if self._tells_activation and "-" in closed.nim else ""\n',
        '        nim = ""\n',
    ),
    Mistake(
        411,
        "an invoice after an unnoticed reset is of the activation before it",
        VERDICT,
        '        return _certified_by(state, nim if state.counters.tc <= before.tc else "")\n',
        "        return _certified_by(state)\n",
    ),
    Mistake(
        52,
        "an intent that waited keeps its epoch",
        "daemon.store.tables.book.attempts",
        "    sealed, head = _seal(connection, book, ended, stored, epoch.number)\n",
        "    sealed, head = _seal(connection, book, ended, stored)\n",
    ),
    Mistake(
        4,
        "a receipt carries the machine's name of now",
        "daemon.store.tables.book.codec",
        "        nim=nim,\n",
        "        nim='EL02000015-1',\n",
    ),
    Mistake(
        538,
        "somebody else's invoice before ours is not in the counters",
        "daemon.machines.adapter",
        "        if counters is None or counters.tc > before.tc + 1:",
        "        if counters is None:",
    ),
    Mistake(
        242,
        "a failed job keeps half of a shared commit",
        "daemon.store.sqlite.writer",
        '        connection.execute("ROLLBACK TO job")\n',
        "",
    ),
    Mistake(
        44,
        "recover believes what the machine said before the cancellation",
        RECOVER,
        "    if unfinished:\n        # Before the",
        "    if False:\n        # Before the",
    ),
    Mistake(
        12,
        "a Z does not wait for an outcome",
        CLOSE,
        "            await worker.attempts.all_durable()\n",
        "",
    ),
    Mistake(
        27,
        "a stranger's invoice under our number is ours",
        ATTEMPT,
        " or not ledger.peek(attempts.was_at_the_machine, book, invoice)",
        "",
    ),
    Mistake(
        46,
        "what is not the machine's last invoice was not certified",
        VERDICT,
        "    return None if may_be_certified(attempt.type, kind, before, now) else NotCertified()\n",
        "    return NotCertified()\n",
    ),
    Mistake(
        205,
        "a Z leaves the known counters as they were",
        CLOSE,
        "            worker.attempts.counters = closure.counters\n",
        "            pass\n",
    ),
    Mistake(
        449,
        "a failed sync is tried again",
        "daemon.store.sqlite.disk_failure",
        "        disk_failed(error.sqlite_errorname, is_sync=error.sqlite_errorcode in _SYNC)\n",
        "        pass\n",
    ),
    Mistake(
        449,
        "after a failed sync the ledger is not copied",
        RENEWAL,
        "    if not is_copy_due(real):\n",
        "    if True:\n",
    ),
    Mistake(
        13,
        "the copy is renamed before it is synced",
        RENEWAL,
        "    sync_path(copy)\n",
        "",
    ),
    Mistake(
        4,
        "a command writes by itself",
        "daemon.store.sqlite.lock",
        '                return cls._acquire(ledger, _COMMAND if is_command else str(control or ""))\n',
        '                return cls() if is_command else cls._acquire(ledger, str(control or ""))\n',
    ),
    Mistake(
        6,
        "a sale that is accepted is not durable",
        "daemon.usecases.deferred.accept",
        "            sale = await worker.ledger.defer(book, waiting, reason or REQUESTED, taken)\n",
        "            sale = waiting\n"
        '            worker.spawn(worker.ledger.defer(book, sale, reason or REQUESTED, taken), "defer")\n',
    ),
    Mistake(
        7,
        "what became of a sale that waited is not noticed",
        ATTEMPTS,
        "    if sealed.invoice.deferred:\n",
        "    if False:\n",
    ),
    Mistake(
        21,
        "the number of a sale that is just being accepted is free",
        ATTEMPTS,
        '        inserted = connection.execute(_SQL["insert"], values)\n',
        '        alone = _SQL["insert"].replace("AND number_key = :number_key", "AND number_key = \'\'")\n'
        "        inserted = connection.execute(alone, values)\n",
    ),
    Mistake(
        6,
        "a sale that waited is certified without its key",
        "daemon.usecases.deferred.certify_waiting",
        "        call = Call(sale.request_id, sale.key, sale.fingerprint)\n",
        "        call = Call(sale.request_id)\n",
    ),
    Mistake(
        3903,
        "taken over without looking at doubts",
        ATTEMPTS,
        '        inserted = connection.execute(_SQL["insert"], values)\n',
        "        unsure = _SQL[\"insert\"].replace(\"'begun', 'certified', 'disputed'\", \"'certified'\")\n"
        "        inserted = connection.execute(unsure, values)\n",
        more=(
            (
                ATTEMPTS,
                "    return next((holder for holder in found if holder is not None), None)\n",
                "    return next((holder for holder in found if holder is not None and holder.state == 'certified'), None)\n",
            ),
        ),
    ),
    Mistake(
        211,
        "one machine of a pair certifies before the other one was compared with an older ledger",
        "daemon.usecases.worker.machine_pair",
        "        if other := self.ledger.peek(take_overs.not_compared, self.book):\n"
        "            return PAIR_NOT_COMPARED(nim=self.book.nim, other=other.nim)\n",
        "",
    ),
    Mistake(
        113,
        "a number that the other machine of a pair has certified is free",
        ATTEMPTS,
        '        inserted = connection.execute(_SQL["insert"], values)\n',
        '        alone = _SQL["insert"].replace("other_id <> :book", "other_id < 0")\n'
        "        inserted = connection.execute(alone, values)\n",
        more=((ATTEMPTS, "    others = take_overs.sharing(connection, book)\n", "    others: list[Book] = []\n"),),
    ),
    Mistake(
        187,
        "a key is not looked up in the book of the other machine",
        "daemon.store.tables.book.uniqueness",
        '_SQL["find_key"], (book.id, key_hash)',
        '_SQL["find_key"].replace("(SELECT other_id FROM shared_book WHERE book_id = ?1)", "(?1)"), (book.id, key_hash)',
    ),
    Mistake(
        120,
        "the number of a sale that waits is free at the other machine",
        ATTEMPTS,
        '        inserted = connection.execute(_SQL["insert"], values)\n',
        '        alone = _SQL["insert"].replace("book_id = other_id AND number_key", "book_id = :book AND number_key")\n'
        "        inserted = connection.execute(alone, values)\n",
        more=(
            (
                DEFERRED,
                '_SQL["is_number_held"], (book.id, number_key(number))',
                '_SQL["is_number_held"].replace("(SELECT other_id FROM shared_book WHERE book_id = ?)", "(?)"), (book.id, number_key(number))',
            ),
        ),
    ),
    Mistake(
        120,
        "what waits at the machine that is out of order is not certified by its spare",
        DEFERRED,
        '_SQL["next"], (book.id',
        '_SQL["next"].replace("FROM served_book WHERE book_id = ?1", "FROM (SELECT ?1 AS other_id)"), (book.id',
    ),
    Mistake(
        656,
        "a doubt of the machine that is out of order is taken for one of its spare",
        "daemon.usecases.certification.idempotency",
        "    owner, book = worker.worker_of(attempt_id), worker.book\n",
        "    owner: MachineWorker | None = worker\n    book = worker.book\n",
    ),
    Mistake(
        385,
        "a number that is free again after a crash is passed over",
        NUMBERS,
        "    lowest_open, adopted = worker.ledger.peek(uniqueness.bounds, worker.book, prefix, series.digits)\n",
        "    lowest_open = adopted = 0\n",
    ),
    Mistake(
        524,
        "a spare that is left alone forgets what its machine has certified",
        "daemon.store.tables.book.take_overs",
        "        if pair not in stored and ids.issuperset(pair):\n",
        "        if pair not in stored:\n",
    ),
    Mistake(
        9970137,
        "a take-over that the configuration ends is of the box's time",
        "daemon.app.runtime",
        "            now = next((worker.now() for worker in workers if worker.book.id in ids), now_millis())\n",
        "            now = now_millis()\n",
    ),
    Mistake(
        9922263,
        "a sale that is accepted before an older ledger was compared gets a number that its machine has used",
        NUMBERS,
        "    floor = max(floor, _machine_place(worker, prefix_of, type_, series.digits))\n",
        "",
    ),
    Mistake(
        9911333,
        "the number of a month that another ledger has closed is given again",
        "daemon.store.tables.book.calendar_closures",
        "    number = max(last.number if last else 0, highest) + 1\n",
        "    number = (last.number if last else 0) + 1\n",
    ),
    Mistake(
        9970078,
        "what a restore that was killed has left stands in the way of the next one",
        "daemon.store.maintenance.backup",
        "        for name in names:\n            name.unlink(missing_ok=True)\n        os.close",
        "        os.close",
    ),
    Mistake(
        9970317,
        "a taxpayer who comes back does not know what the machine has counted meanwhile",
        "daemon.store.tables.book.epochs",
        '    connection.execute(_SQL["go_on"], (book.id, taken.id))\n',
        "",
    ),
    Mistake(
        9970317,
        "a till that waited for another request sells for the next taxpayer",
        WORKER,
        "        if book.id != self.book.id:\n",
        "        if False:\n",
    ),
    Mistake(
        21,
        "a number is free as soon as its year is over",
        "daemon.core.invoice.number",
        "        return TakenFrom(year, start, at - DAY)\n",
        "        return TakenFrom(year, start)\n",
    ),
    Mistake(
        15,
        "an outage that is written down late lasts over what was certified meanwhile",
        "daemon.store.tables.book.outages",
        "    if certified:\n",
        "    if False:\n",
    ),
    Mistake(
        23,
        "a second outage begins while one lasts",
        "daemon.store.tables.book.outages",
        "    if last is not None and last.is_open:\n        return None\n",
        "",
    ),
    Mistake(
        57,
        "an outage of the daemon before is forgotten at a start",
        "daemon.usecases.outages",
        "        return self.worker.ledger.peek(outages.open_outage, self.worker.book)\n",
        "        lasting = self.worker.ledger.peek(outages.open_outage, self.worker.book)\n"
        "        return lasting if self._found is not None and self._found.reason != 'box_off' else None\n",
    ),
    Mistake(
        7,
        "a till that is refused begins no outage",
        "daemon.usecases.worker.machine_workers",
        '            worker.spawn(_register(worker, error), "outage")\n',
        "            pass\n",
    ),
    Mistake(
        1201,
        "a refusal that the disk did not take is forgotten",
        "daemon.usecases.outages",
        "            found.refused = True\n",
        "",
    ),
    Mistake(
        325,
        "certifications are no signs of life",
        "daemon.store.tables.book.outages",
        "    return int(max(value_of(certified), last.until if last else 0))\n",
        "    return last.until if last else 0\n",
    ),
    Mistake(
        1403,
        "whether a call has expired is not looked at after it has waited",
        ENTER,
        "        check_expiry(expires)\n    except",
        "    except",
        more=((ATTEMPT, "    enter_invoice.check_expiry(job.call.expires)\n", ""),),
    ),
    Mistake(
        28,
        "a call carries no key",
        "daemon.api.request.outcome",
        "    if not key:\n        return Call(",
        "    if not key or expires:\n        return Call(",
    ),
    Mistake(
        91,
        "a sale that waits for its box is acknowledged before the box has it",
        "relay.later",
        "        except RelayProblem as problem:\n            return DELAYS.get(type(problem), AGAIN_SECONDS)\n",
        "        except RelayProblem:\n            return 0\n",
    ),
    Mistake(
        234,
        "an answer that is lost is told as a call that was not sent",
        BOXES,
        "            raise (BoxSilent if is_sent else BoxOffline) from None\n",
        "            raise BoxOffline from None\n",
        more=(
            (
                BOXES,
                '            box.line, box.generation = reply.line if reply else "", 0\n            raise BoxSilent\n',
                '            box.line, box.generation = reply.line if reply else "", 0\n            raise BoxOffline\n',
            ),
        ),
    ),
    Mistake(
        8,
        "a closure comes from its machine by another name than it says",
        "daemon.upstream.options",
        '    nim = report.get("nim") or entry.nim\n',
        "    nim = entry.nim\n",
    ),
    Mistake(
        5,
        "headquarters does not know that a machine may count exports in TC alone",
        "headquarters.core.checks",
        "        if not total - after.exports - foreign_exports <= grown <= total:\n",
        "        if grown != total:\n",
    ),
    Mistake(
        14,
        "a certification that a machine tells later is no news",
        "daemon.store.ledger",
        "        if connection.total_changes != before:  # a repetition is no news\n",
        "        if connection.total_changes != before and outcome.line_ms:\n",
    ),
)


def found_by(seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first that fails, and how."""
    return next(((seed, outcome.failure) for seed in seeds if (outcome := played(seed)).failure), None)
