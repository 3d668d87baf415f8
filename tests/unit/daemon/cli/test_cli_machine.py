import asyncio
import json
import re

import pytest
from support.cli.command import NIM, Command, audited
from support.ledgers.ledger import START, Till, invoice, opened, opened_till, settlements, tamper
from support.shop import Machine

from bridge.port import open_port
from daemon.cli.commands import settle
from daemon.core.machine.state import FiscalCounters
from daemon.settings import load
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state, open_book
from daemon.store.tables.book.epochs import book_of_taxpayer
from daemon.store.tables.book.take_overs import replacement

OTHER = "EL02000016-1"


@pytest.fixture
def mcfd(tmp_path):
    return Command(tmp_path)


async def test_the_machines_and_what_the_ledger_knows(mcfd):
    """One line for each, configured or only in the ledger; of one in attention what was found, and the command that settles it."""
    async with opened_till(mcfd.ledger) as (store, till):
        await till.sell()
        await till.close()
        other = await store.ledger.write(open_book, OTHER, "live")
    ours, second = mcfd.json("machine", "list")
    assert ours == {
        "nim": NIM,
        "port": str(mcfd.folder / f"machine-{NIM}"),
        "condition": "known",
        "spare_for": None,
        "take_over": None,
        "live": None,
        "attention": None,
        "counters": {"tc": 1, "fvc": 1, "frc": 0},
        "last_invoice": "S-1",
        "z_number": 1,
        "unexplained": 0,
    }
    assert (second["nim"], second["port"], second["condition"]) == (OTHER, None, "not configured")
    head, line, _ = mcfd.ok("machine", "list").splitlines()
    assert head.split() == ["NIM", "PORT", "STATE", "Z", "TC", "FVC", "FRC", "LAST", "INVOICE"]
    assert line.split() == [NIM, str(mcfd.folder / f"machine-{NIM}"), "known", "1", "1", "1", "0", "S-1"]
    async with opened(mcfd.ledger) as store:
        await store.ledger.set_attention(other, "found this", at=1)
    assert mcfd.json("machine", "list")[1]["attention"] == "found this"
    assert f"{OTHER}: found this\n  → mcfd machine settle {OTHER}\n" in mcfd.ok("machine", "list")


async def test_a_spare_and_a_take_over_are_named(mcfd):
    """Which machine a spare is for; while it has taken over, since when and why, at both machines."""
    with mcfd.config.open("a") as config:
        config.write(f'[[machine]]\nnim = "{OTHER}"\nport = "spare"\nspare_for = "{NIM}"\n')
    async with opened(mcfd.ledger) as store:
        pair = [await store.ledger.write(open_book, nim, "live") for nim in (NIM, OTHER)]
    assert f"\n{OTHER} is the spare of {NIM}\n" in mcfd.ok("machine", "list")
    first, spare = mcfd.json("machine", "list")
    assert (first["spare_for"], spare["spare_for"]) == (None, NIM)
    assert (first["take_over"], spare["take_over"]) == (None, None)
    async with opened(mcfd.ledger) as store:
        await store.decisions.take_over(*pair, reason="it fell", at=START)
    output = mcfd.ok("machine", "list")
    assert (
        f"{OTHER} certifies in the place of {NIM} since 2025-12-06 05:46:40: it fell\n  → mcfd machine take-back"
        in output
    )
    assert "is the spare of" not in output
    lasts = {"nim": NIM, "spare": OTHER, "since": "2025-12-06T05:46:40.000Z", "reason": "it fell"}
    assert [each["take_over"] for each in mcfd.json("machine", "list")] == [lasts, lasts]


async def test_of_two_taxpayers_of_a_machine_the_present_one_is_meant(mcfd):
    """A take-over, a repair of the time and the list are about its books, also after the first one has come back."""
    with mcfd.config.open("a") as config:
        config.write(f'[[machine]]\nnim = "{OTHER}"\nport = "spare"\nspare_for = "{NIM}"\n')
    async with opened(mcfd.ledger) as store:
        before = [await store.ledger.write(open_book, nim, "live") for nim in (NIM, OTHER)]
        for book in before:
            await store.ledger.write(book_of_taxpayer, book, book.nim, "00012345A")
        first, spare = [await store.ledger.write(book_of_taxpayer, book, book.nim, "00099999Z") for book in before]
        till = await Till.of(store)
        till.at += 20 * 365 * 86_400_000
        await till.sell()
        assert till.book == first
    assert [each["last_invoice"] for each in mcfd.json("machine", "list")] == ["S-1", None]
    mcfd.ok("machine", "take-over", NIM, "--reason", "it fell")
    async with opened(mcfd.ledger) as store:
        assert store.ledger.peek(replacement, first) == spare
    assert mcfd.ok("time", "repair", NIM, "--reason", "wrong year").startswith(NIM)
    async with opened(mcfd.ledger) as store:
        await store.ledger.write(book_of_taxpayer, first, NIM, "00012345A")
    assert [each["last_invoice"] for each in mcfd.json("machine", "list")] == [None, None]


async def test_keys_of_a_former_taxpayer_are_none_of_the_machine(mcfd):
    """`keys list` names them, and doctor advises a new one, as for a key that has come to its end."""
    mcfd.ok("keys", "create", "--nim", NIM)
    async with opened(mcfd.ledger) as store:
        book = await store.ledger.write(open_book, NIM, "live")
        for ifu in ("00012345A", "00099999Z"):
            book = await store.ledger.write(book_of_taxpayer, book, NIM, ifu)
    assert [key["of_another_taxpayer"] for key in mcfd.json("keys", "list")] == [True]
    assert mcfd.ok("keys", "list").endswith("of another taxpayer\n")

    def advice() -> list[str]:
        checks = json.loads(mcfd.run("doctor", "--json").stdout)["checks"]
        return [each["state"] for each in checks if each["check"] == "keys"]

    assert advice() == ["warn"]
    mcfd.ok("keys", "create", "--nim", NIM)
    assert advice() == ["ok"]
    tamper(mcfd.ledger, "UPDATE api_key SET expires_at = 1")
    assert advice() == ["warn"]


def test_a_machine_is_read_when_nobody_else_does(mcfd, machine):
    """C1h, C2h and 2Bh in the shape of the API's `/info`; reading leaves the machine as it was."""
    content = mcfd.json("machine", "info")
    assert (content["source"], content["machine"]["nim"], content["machine"]["ifu"]) == ("machine", NIM, "00084440Y")
    assert content["machine"]["counters"] == {"tc": 0, "fvc": 0, "frc": 0}
    assert content["machine"]["taxServer"]["alert"] is False
    assert "TRADE NAME" in mcfd.ok("machine", "info", NIM)
    assert machine.counters == (0, 0, 0)
    assert not mcfd.ledger.exists()


async def test_a_line_that_is_held_is_left_alone(mcfd, machine):
    """While another program has the port, what the ledger knows is shown instead."""
    async with opened(mcfd.ledger) as store:
        await (await Till.of(store)).sell()
    port = open_port(str(machine.link))
    try:
        content = mcfd.json("machine", "info")
        text = mcfd.run("machine", "info")
    finally:
        port.close()
    assert (content["source"], content["machine"], content["ledger"]["last_invoice"]) == ("ledger", None, "S-1")
    assert "is held by another program" in text.stderr
    assert "TC 1  FVC 1  FRC 0" in text.stdout


def test_no_machine_or_another_one_there(mcfd, tmp_path):
    """A port that does not exist is one line, and is no crash; a NIM that is not configured is refused. A cable in the wrong machine is seen at once."""
    content = mcfd.json("machine", "info")
    assert content["source"] == "ledger"
    assert "no such device" in content["problem"]
    assert mcfd.refused(1, "machine", "info", OTHER) == f"{OTHER} is not in the configuration; there is {NIM}"
    machine = Machine(tmp_path, OTHER).start()
    try:
        (tmp_path / f"machine-{NIM}").symlink_to(machine.link)
        assert f"the machine on this port is {OTHER}" in mcfd.run("machine", "info").stderr
    finally:
        machine.kill()


def test_ports_need_no_configuration(mcfd):
    """The ports of the box, whether or not there is a configuration yet."""
    mcfd.config.unlink()
    assert isinstance(mcfd.json("machine", "ports"), list)
    assert mcfd.ok("machine", "ports").startswith("STABLE NAME")


# -- settling -------------------------------------------------------------------------------------------------------------


async def in_dispute(mcfd, *behind) -> str:
    """38h of D-1 went out, and was certified, with those invoices `behind` it: what the machine says fits no story. Its time."""
    async with opened_till(mcfd.ledger) as (store, till):
        await till.sell()
        attempt_id = await till.begin(invoice("D-1"))
        await store.ledger.dispute(till.book, attempt_id, "D-1 has no known outcome", at=till.at)
        for sale in (invoice("D-1"), *behind):
            till.word(sale)
        state = till.state(sale)
        await store.ledger.store_evidence(till.book, state, at=till.at)
    return till.state().time


@pytest.fixture
async def disputed(mcfd):
    await in_dispute(mcfd)
    return mcfd


async def stored_attempt(mcfd: Command, number: str):
    async with opened(mcfd.ledger) as store:
        book = await store.ledger.write(open_book, NIM, "live")
        (settlement,) = await store.decisions.read(settlements, book)
        return store.ledger.peek(attempts.find_number, book, number), store.ledger.peek(book_state, book), settlement


def settled_events(mcfd: Command) -> list[dict[str, str]]:
    """What the audit log has of them."""
    entries = audited(mcfd, "attempt.settled")
    assert all(entry["subject"] == f"{NIM} live" for entry in entries)
    return [entry["detail"] for entry in entries]


async def test_the_machine_did_certify(disputed):
    """`certified`: the machine's own code, time and counters enter the ledger, with the reason; work may go on."""
    output = disputed.ok("machine", "settle", NIM, "--decision", "certified", "--reason", "seen on its journal")
    assert "D-1 has no known outcome" in output
    assert "code " in output
    record, state, settlement = await stored_attempt(disputed, "D-1")
    assert (record.state, record.counters.fvc, len(record.code)) == ("certified", 2, 24)
    assert (state.attention, settlement.reason) == ("", "seen on its journal")
    assert settled_events(disputed) == [{"decision": "certified", "number": "D-1", "reason": "seen on its journal"}]
    disputed.ok("verify")
    assert disputed.json("machine", "settle") == {"settled": False, "attention": None}
    assert disputed.ok("machine", "settle") == "nothing to settle: no machine is in attention\n"
    nowhere = f"EL99999999 is not in the configuration; there is {NIM}"
    assert disputed.refused(1, "machine", "settle", "EL99999999") == nowhere


async def test_two_persons_settle_one_case(disputed, monkeypatch):
    """Decided while the second command reads the machine: nothing is left to settle. Its error says that the one decision it offered did not fit."""

    async def read(_machine):
        disputed.ok("machine", "settle", NIM, "--decision", "certified", "--reason", "the other one")

    monkeypatch.setattr(settle, "_read_machine", read)
    assert await asyncio.to_thread(settle._find, load(disputed.config), NIM, "") == (None, None)


CODE = "7Q2M-K4ZP-ABCD-EFGH-IJKL-MN27"


async def test_what_stands_on_the_machine_s_paper_is_entered(mcfd):
    """`certified` with code and time, where the machine's last invoice is another; what is typed wrongly is named in the error."""
    time = await in_dispute(mcfd, invoice("X-1"))
    settling = ("machine", "settle", "--decision", "certified", "--reason", "ticket")
    assert "--code, --time" in mcfd.run(*settling).stderr
    done = mcfd.run(*settling, "--code", "7Q2M", "--time", "hier", "--counters", "trois")
    assert (done.returncode, [name in done.stderr for name in ("--code", "--time", "--counters")]) == (2, [True] * 3)
    early = mcfd.run(*settling, "--code", CODE, "--time", "20200101000000")
    assert (early.returncode, "cannot be of that time" in early.stderr) == (1, True)
    counters = mcfd.json(*settling, "--code", CODE, "--time", time, "--counters", "2/2 FV")
    assert counters["decision"] == "certified"
    record, state, _ = await stored_attempt(mcfd, "D-1")
    assert (record.state, record.code, record.machine_time) == ("certified", CODE.replace("-", ""), time)
    assert (record.counters, record.fc, state.counters.fvc) == (FiscalCounters(2, 2, 0), 2, 2)
    mcfd.ok("verify")


@pytest.mark.parametrize("is_printed", [True, False])
async def test_a_time_that_cannot_be_is_entered_once_it_is_confirmed(mcfd, is_printed):
    """The machine's clock was wrong: the person with its paper says so, at the terminal or beforehand, and the audit log has it; a typing error ends there."""
    await in_dispute(mcfd, invoice("X-1"))
    typed = f"certified\n{CODE}\n01/01/2020 00:00:00\n\n{'y' if is_printed else 'n'}\nticket\n"
    done = mcfd.at_terminal(typed.encode(), "machine", "settle")
    assert (done.returncode, "cannot be of that time" in done.stdout) == (0 if is_printed else 1, True)
    if not is_printed:
        mcfd.ok(
            *("machine", "settle", "--decision", "certified", "--reason", "ticket", "--as-printed"),
            *("--code", CODE, "--time", "20200101000000"),
        )
    record, _, _ = await stored_attempt(mcfd, "D-1")
    assert (record.state, record.machine_time) == ("certified", "20200101000000")
    assert settled_events(mcfd) == [{"decision": "certified", "number": "D-1", "reason": "ticket", "as_printed": "yes"}]
    mcfd.ok("verify")


async def test_what_is_not_decided(disputed, tmp_path):
    """Without decision or reason 2, with another case by now 1; the machine's fresh word counts. Nothing is written."""
    settling = ("machine", "settle", "--decision", "certified", "--reason", "x")
    look = disputed.run("machine", "settle")
    assert "--decision is needed" in look.stderr
    case = re.search(r"^case: (\w+)$", look.stdout, re.MULTILINE)[1]
    machine = Machine(tmp_path).start()
    try:
        fresh = disputed.run(*settling)
        assert machine.counters == (0, 0, 0)
    finally:
        machine.kill()
    for done, code, expected in (
        (disputed.run("machine", "settle", "--decision", "certified", "--reason", " "), 2, "--reason is needed"),
        (disputed.run(*settling, "--case", "0123456789ab"), 1, "not the one that was shown"),
        (fresh, 1, "the machine's last invoice is not D-1"),
    ):
        assert (done.returncode, expected in done.stderr) == (code, True), done.stderr
    assert disputed.json("machine", "list")[0]["condition"] == "attention"
    disputed.ok(*settling, "--case", case)


async def test_at_a_terminal_it_is_asked(disputed):
    """An operator sees what was found, chooses, and says why."""
    done = disputed.at_terminal(b"certified\nvu sur le journal\n", "machine", "settle", LC_ALL="fr_FR.UTF-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "facture sans issue connue\N{NO-BREAK SPACE}: D-1 (FV, 15000 XOF)" in done.stdout
    assert "Décision" in done.stdout
    record, _, settlement = await stored_attempt(disputed, "D-1")
    assert (record.state, settlement.reason) == ("certified", "vu sur le journal")
