"""Operations of commands on the ledger, as messages: a running daemon carries them out; without one the command does.
One request and one answer, each a line of JSON, over a Unix socket (`daemon.app.control`, `daemon.ledger_access`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias, TypeVar, get_type_hints

import msgspec

from common.language import Language, sentence, translate
from daemon.core import errors
from daemon.core.audit import Actor
from daemon.core.errors import FieldError, InvalidRequest, McfdError
from daemon.core.keys import KeyTerms
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.core.ledger.decision import Decision, DecisionRefused, Obstacle
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.take_over import TakeOverRefused
from daemon.core.ledger.verdict import Evidence
from daemon.core.people import Role
from daemon.store.retention import AWAY_AT
from daemon.store.tables import audit, keys, people
from daemon.store.tables.meta import Damage, write_meta

if TYPE_CHECKING:
    from daemon.store.store import Store

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
LONGEST = 256 * 1024
"""Bytes of a request; it never contains an invoice, which may have 4096 items."""


class Operation(Protocol[T_co]):
    """`carry_out` may raise McfdError or DecisionRefused."""

    is_offline: ClassVar[bool]
    """Not allowed beside a daemon, whose workers would continue with the old state."""

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> T_co: ...


class OperationMessage(msgspec.Struct, frozen=True, tag_field="operation"):
    is_offline: ClassVar[bool] = False

    @property
    def at_rest(self) -> tuple[Book, ...]:
        """Books whose machines must be idle meanwhile."""
        return ()


class CreateKey(OperationMessage, frozen=True, tag="keys.create"):
    nim: str
    mode: Mode
    label: str
    terms: KeyTerms = KeyTerms()

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> str:
        return await store.ledger.write(
            keys.create_key, self.nim, self.mode, self.label, at=at, terms=self.terms, by=by
        )


class RevokeKey(OperationMessage, frozen=True, tag="keys.revoke"):
    key_id: int

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        await store.ledger.write(keys.revoke_key, self.key_id, at=at, by=by)


class CreateUser(OperationMessage, frozen=True, tag="users.create"):
    """`password` is a hash, here and below."""

    name: str
    role: Role
    password: str

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        await store.ledger.write(people.create_person, self.name, self.role, self.password, at=at, by=by)


class SetPassword(OperationMessage, frozen=True, tag="users.passwd"):
    name: str
    password: str

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        await store.ledger.write(people.set_password, self.name, self.password, at=at, by=by)


class DisableUser(OperationMessage, frozen=True, tag="users.disable"):
    name: str

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        await store.ledger.write(people.disable_person, self.name, at=at, by=by)


class CreateFirstPerson(OperationMessage, frozen=True, tag="setup.person"):
    """The first person of a setup; False if a person may log in already. With a `session` (SHA-256 of its cookie) the
    password was chosen by the person: one left by an interrupted setup gets it, and is logged in."""

    name: str
    password: str
    session: bytes | None = None

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> bool:
        if self.session is None and any(
            not person.disabled_at for person in await store.ledger.read(people.list_people)
        ):
            return False
        person = store.ledger.peek(people.find_person, self.name)
        if person is None or person[0].disabled_at or person[0].role != "technician":
            await store.ledger.write(people.create_person, self.name, "technician", self.password, at=at, by=by)
        else:
            await store.ledger.write(people.set_password, self.name, self.password, at=at, by=by)
        if self.session is not None and (created := store.ledger.peek(people.find_person, self.name)):
            await store.ledger.write(people.open_session, created[0].id, self.name, self.session, at=at, by=by)
        return True


class Settle(OperationMessage, frozen=True, tag="machine.settle"):
    """`fingerprint` names the decided case; `fresh` is the machine's state if the command could read it; `decided_at`
    is the decision's time."""

    book: Book
    fresh: Evidence | None
    fingerprint: str
    decision: Decision
    reason: str
    decided_at: int
    paper: PaperInvoice | None

    @property
    def at_rest(self) -> tuple[Book, ...]:
        return (self.book,)

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        del at
        case = await store.decisions.case(self.book, self.fresh)
        if case.fingerprint != self.fingerprint:
            raise DecisionRefused("changed")
        await store.decisions.carry_out(
            case, self.decision, reason=self.reason, at=self.decided_at, by=by, paper=self.paper
        )


class DecideSpare(OperationMessage, frozen=True, tag="machine.spare"):
    """The spare takes over, or the machine is taken back; `decided_at` is the decision's time in ms."""

    first: Book
    spare: Book
    reason: str
    decided_at: int
    is_back: bool

    @property
    def at_rest(self) -> tuple[Book, ...]:
        return (self.spare if self.is_back else self.first,)

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        del at
        if self.is_back:
            await store.decisions.take_back(self.first, reason=self.reason, at=self.decided_at, by=by)
        else:
            await store.decisions.take_over(self.first, self.spare, reason=self.reason, at=self.decided_at, by=by)


class SetLastZ(OperationMessage, frozen=True, tag="machine.last-z"):
    book: Book
    number: int

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        await store.decisions.set_last_z(self.book, self.number, at=at, by=by)


class AcceptTime(OperationMessage, frozen=True, tag="time.accept"):
    upto: int

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        from daemon.store.tables.book.books import accept_time  # noqa: PLC0415  its import takes each command 30 ms

        del at, by
        await store.decisions.write(accept_time, self.upto)


class RepairTime(OperationMessage, frozen=True, tag="time.repair"):
    is_offline = True

    book: Book
    right: int
    ahead: int
    reason: str

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        from daemon.store.tables.book import entries  # noqa: PLC0415  as accept_time above

        del at, by
        await store.decisions.write(
            entries.repair_time, self.book, now=self.right, ahead=self.ahead, reason=self.reason
        )


class ReplayOutbox(OperationMessage, frozen=True, tag="upstream.replay"):
    """Returns the number of events to be sent again."""

    destination: str
    nim: str = ""
    from_z: int | None = None

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> int:
        outbox = store.outbox_for(self.destination)
        return await outbox.replay(nim=self.nim or None, from_z=self.from_z, at=at, by=by)


class NoteBackup(OperationMessage, frozen=True, tag="backup.note"):
    """`is_away`: of the whole box, on another disk than the ledger."""

    file: str
    is_whole: bool
    is_away: bool

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        if self.is_away:
            await store.ledger.write(write_meta, AWAY_AT, str(at))
        await store.ledger.write(
            audit.add, "backup.taken", self.file, at=at, by=by, detail={"all": "yes"} if self.is_whole else {}
        )


class NoteAction(OperationMessage, frozen=True, tag="audit.note"):
    """A command's own deed, for the audit log. The daemon then joins or leaves a headquarters at once."""

    action: Literal["archive.made", "authority.created", "upstream.joined", "upstream.left"]
    subject: str
    detail: dict[str, str] = {}

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        await store.ledger.write(audit.add, self.action, self.subject, at=at, by=by, detail=self.detail)


class NoteVerified(OperationMessage, frozen=True, tag="verify.note"):
    """Faults found by `mcfd verify` in the file and its entries; none: the ledger is intact."""

    file: tuple[str, ...]
    entries: tuple[str, ...]

    async def carry_out(self, store: Store, *, at: int, by: Actor) -> None:
        del by
        await store.retention.note_verified(Damage(self.file, self.entries), at=at)


AnyOperation: TypeAlias = (
    CreateKey
    | RevokeKey
    | CreateUser
    | SetPassword
    | DisableUser
    | CreateFirstPerson
    | Settle
    | DecideSpare
    | SetLastZ
    | AcceptTime
    | RepairTime
    | ReplayOutbox
    | NoteBackup
    | NoteAction
    | NoteVerified
)


# -- over the socket ---------------------------------------------------------------------------------------------------


class OperationRequest(msgspec.Struct, frozen=True):
    """`sudo_user` called root's command by sudo."""

    operation: AnyOperation
    sudo_user: str = ""
    language: Language = "en"
    """Language of a refusal."""


class OperationRefusal(msgspec.Struct, frozen=True):
    """An error of `daemon.core.errors`, by its class."""

    kind: str
    message: str
    errors: tuple[FieldError, ...] = ()
    obstacle: Obstacle | None = None


class OperationAnswer(msgspec.Struct, frozen=True):
    """The result of `carry_out`, or the refusal."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    refusal: OperationRefusal | None = None


def refusal_of(error: McfdError | DecisionRefused, language: Language) -> OperationRefusal:
    if isinstance(error, DecisionRefused):
        return OperationRefusal("DecisionRefused", str(error), obstacle=error.obstacle)
    found = error.errors if isinstance(error, InvalidRequest) else ()
    faults = tuple(FieldError(fault.field, str(translate(fault.message, language))) for fault in found)
    return OperationRefusal(type(error).__name__, sentence(error).in_language(language), faults)


def error_of(refusal: OperationRefusal) -> Exception:
    """The same error, to be raised in the command."""
    if refusal.obstacle is not None:
        return DecisionRefused(refusal.obstacle)
    if refusal.kind == "InvalidRequest":
        return InvalidRequest(list(refusal.errors))
    kinds: dict[str, type[McfdError]] = {
        "TakeOverRefused": TakeOverRefused,
        "MachineBusy": errors.MachineBusy,
        "NotFound": errors.NotFound,
        "StorageFull": errors.StorageFull,
        "LedgerMoved": errors.LedgerMoved,
        "LedgerUnusable": errors.LedgerUnusable,
    }
    return kinds.get(refusal.kind, McfdError)(refusal.message)


def result_of(answer: OperationAnswer, operation: Operation[T]) -> T:
    if answer.refusal is not None:
        raise error_of(answer.refusal)
    hints = get_type_hints(type(operation).carry_out, localns={"Store": object})
    result: T = msgspec.json.decode(answer.result, type=hints["return"])
    return result
