"""Output about one machine: from the daemon, from the machine, from the ledger."""

from collections.abc import Iterator, Sequence

from common.language import tr
from common.language.reasons import from_stored
from daemon.cli.output import moment, stamp
from daemon.core.clock import drift_seconds, millis_text
from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.take_over import TakeOver
from daemon.core.machine.state import FiscalCounters, PortReading, same_machine
from daemon.core.report.machine_info import MachineInfo, last_contact, machine_info
from daemon.doctor.service import MachineHealth
from daemon.settings import Settings


def health_pairs(health: MachineHealth) -> list[tuple[object, object]]:
    days, drift = health.tax_server_days, health.clock_drift
    return [
        ("NIM", health.nim),
        (tr("STATE"), tr("ready") if health.connected else health.last_error),
        (tr("WAITING"), health.waiting),
        (tr("CLOCK"), "–" if drift is None else tr("the box is {drift} s ahead", drift=drift)),
        (tr("TAX SERVER"), tr(last_contact(days))),
        (tr("TO BE SENT"), "–" if health.tax_server_waiting is None else health.tax_server_waiting),
    ]


def info_of(nim: str, reading: PortReading) -> MachineInfo:
    """In the form of the API's `/info`."""
    at, drift = reading.read_at, drift_seconds(reading.read_at, reading.state.time)
    book = Book(0, nim, "live")
    return machine_info(
        book, reading.state, reading.link, reading.taxpayer, drift=drift, read_at=millis_text(at), now=at
    )


def reading_pairs(nim: str, reading: PortReading) -> list[tuple[object, object]]:
    """A machine's reading, for people."""
    state, info = reading.state, info_of(nim, reading)
    server = info.tax_server
    last = state.last
    contact = tr(last_contact(server.days_since_contact))
    drift = "?" if info.clock_drift is None else info.clock_drift
    return [
        ("NIM", state.nim),
        ("IFU", state.ifu),
        (tr("TRADE NAME"), info.merchant.commercial_name),
        (tr("CITY"), info.merchant.city),
        (tr("CLOCK"), tr("{time} (the box is {drift} s ahead)", time=state.time, drift=drift)),
        (tr("COUNTERS"), counted(state.counters)),
        (tr("LAST INVOICE"), f"{last.number} ({last.type}, {last.total} XOF)" if last else "–"),
        (tr("TAX SERVER"), f"{contact} ({server.last_contact})" if server.last_contact else contact),
        (tr("TO BE SENT"), server.waiting),
        *([(tr("ERROR"), server.last_error)] if server.last_error else []),
    ]


def ledger_pairs(state: BookState | None) -> list[tuple[object, object]]:
    if state is None or state.counters is None:
        return [(tr("STATE"), tr("never read"))]
    return [
        ("IFU", state.ifu),
        (tr("COUNTERS"), counted(state.counters)),
        (tr("LAST INVOICE"), state.last_number or "–"),
        ("Z", state.z_number),
        *([(tr("ATTENTION"), tr(from_stored(state.attention)))] if state.attention else []),
    ]


def counted(counters: FiscalCounters) -> str:
    return f"TC {counters.tc}  FVC {counters.fvc}  FRC {counters.frc}"


# -- a machine and its spare -------------------------------------------------------------------------------------------


def pair_lines(settings: Settings, lasting: Sequence[TakeOver]) -> Iterator[str]:
    """For each take-over in force its start and reason; for each other spare its machine."""
    for each in lasting:
        yield (
            tr(
                "{spare} certifies in the place of {nim} since {moment}: {reason}",
                spare=each.spare.nim,
                nim=each.first.nim,
                moment=moment(each.began_at, settings.reports.zone),
                reason=each.reason,
            )
            + f"\n  → mcfd machine take-back {each.first.nim}"
        )
    for machine in settings.machine:
        if machine.spare_for and not any(same_machine(machine.nim, each.spare.nim) for each in lasting):
            yield tr("{spare} is the spare of {nim}", spare=machine.nim, nim=machine.spare_for)


def take_over_json(lasting: TakeOver) -> dict[str, object]:
    """For scripts: `spare` certifies in place of `nim`."""
    began = stamp(lasting.began_at)
    return {"nim": lasting.first.nim, "spare": lasting.spare.nim, "since": began, "reason": lasting.reason}
