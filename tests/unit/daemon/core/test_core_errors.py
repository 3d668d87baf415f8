"""What an error says, and how the ledger gives it back."""

from pathlib import Path

import pytest
from support.core_samples import record

from bridge.errors import PortUnavailable, UnknownCommand
from common.language import sentence
from common.language.reasons import FRAME_OVERFLOW, INVOICE_LOST, NOT_SENT, NOT_SENT_BECAUSE, to_stored
from daemon.core import errors
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.deferred import NumberWaits
from daemon.core.ledger.failure import failure_of, reason_of
from daemon.core.ledger.take_over import MachineIsSpare, NumberReserved, PairNotCompared

NIM, OTHER = "EL09999999-7", "EL01111111-3"
SOCKET = Path("/run/control")


@pytest.mark.parametrize(
    ("error", "values"),
    [
        (errors.KeyReused(), ()),
        (errors.RequestExpired(), ()),
        (errors.OutcomeNotStored(), ()),
        (errors.ZNumberUnknown(NIM), (NIM,)),
        (errors.PeriodEnded(7), ("the last Z is number 7",)),
        (errors.PeriodNotOver("2026-03", "2026-01"), ("2026-03 is not over",)),
        (errors.PeriodNotOver("", "2026-01"), ("since 2026-01",)),
        (errors.PeriodNotOver("", ""), ("nothing is over yet",)),
        (errors.CreditExceedsOriginal(f"{NIM}-5", 15000, 16001), (f"{NIM}-5", "15000", "16001")),
        (errors.CreditExceedsOriginal(f"{NIM}-5", 15000, 16001, 99), (f"{NIM}-5", "15000", "16001", "99")),
        (errors.TooManyActs(60, 7), ("60 times",)),
        (errors.MachineRefused("FOND DE CAISSE"), ("refused: FOND DE CAISSE",)),
        (errors.NothingDone(OSError("cable"), "nothing was cancelled"), ("(cable)", "nothing was cancelled")),
        (errors.CertifiedElsewhere(OTHER, "ABCD", "F-9"), (OTHER, "ABCD", "'F-9'")),
        (
            errors.LedgerInUse(Path("/x/ledger.db"), "4711", SOCKET, is_command=False),
            ("/x/ledger.db", "4711", "systemctl"),
        ),
        (errors.EntryDamaged(8421, "F-9"), ("entry 8421", "'F-9'")),
        (errors.EntryDamaged(None, b""), ("entry 0", "''")),
        (DuplicateInvoice(record()), ("'FV-1'",)),
        (NumberWaits("F-9"), ("'F-9'",)),
        (MachineIsSpare(OTHER, NIM), (f"{OTHER} is the spare of {NIM}",)),
        (PortUnavailable("/dev/x", "busy", "cause"), ("/dev/x", "cause")),
        (UnknownCommand(0x2B), ("2Bh",)),
    ],
)
def test_an_error_says_what_it_is_about_in_both_languages(error: Exception, values: tuple[str, ...]) -> None:
    """With each value that it was made of; a service's command is named to who runs the service alone."""
    text = sentence(error)
    assert [value for value in values if value not in text] == []
    assert text.in_language("fr") != text == str(error)


def test_a_command_that_has_the_ledger_is_no_service_to_be_stopped() -> None:
    """Nor does an error with seconds to wait say them in its sentence."""
    assert "systemctl" not in str(errors.LedgerInUse(Path("/x"), "", None, is_command=True))
    assert [str(kind("busy", 7)) for kind in (errors.MachineBusy, errors.MachineOffline)] == ["busy", "busy"]


def failure_from(reason: str, state: str = "abandoned") -> tuple[type[errors.McfdError], str]:
    error = failure_of(record(state=state, counters=None, code="", reason=reason))
    return type(error), str(error)


@pytest.mark.parametrize(
    "error",
    [
        errors.CreditExceedsOriginal(f"{NIM}-5", 15000, 16001),
        errors.CreditExceedsOriginal(f"{NIM}-5", 15000, 16001, 99),
        errors.InvalidRequest.at("items[0].name", "must be a string: none"),
        errors.RequestExpired(),
        *(
            kind("why")
            for kind in (errors.MachineBusy, errors.MachineOffline, NumberReserved, PairNotCompared, errors.StorageFull)
        ),
    ],
)
def test_who_asks_later_gets_the_answer_of_the_request(error: errors.McfdError) -> None:
    """The error that ended an attempt before the machine, with the same sentence, out of what the ledger has of it."""
    assert failure_from(to_stored(reason_of(error, NOT_SENT_BECAUSE))) == (type(error), str(error))


def test_what_ended_at_the_machine_is_told_by_its_reason() -> None:
    """A refusal in its own words, or an answer that is none; where nothing was sent, it is offline; else the line was lost."""
    assert failure_from("E:PLEIN", "refused") == (errors.MachineRefused, "the machine refused: E:PLEIN")
    assert failure_from(to_stored(FRAME_OVERFLOW(count=300, limit=200)), "refused")[0] is errors.MachineRefused
    assert failure_from(to_stored(INVOICE_LOST), "refused")[0] is errors.MachineNonsense
    assert failure_from(to_stored(NOT_SENT))[0] is errors.MachineOffline
    kind, text = failure_from(to_stored(INVOICE_LOST))
    assert (kind, str(INVOICE_LOST) in text, "may be sent again" in text) == (errors.NothingDone, True, True)
    assert failure_from(to_stored(NOT_SENT_BECAUSE(cause="why", kind="NotOfOurs"))) == (errors.MachineOffline, "why")
