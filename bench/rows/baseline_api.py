"""The endpoint that row 7 is compared with: FastAPI, SQLAlchemy, SQLite with WAL and FULL, a pool of 64; as a guide would write it.

    python -m bench.rows.baseline_api LEDGER PORT

It stores what mcfd stores of a certification, in two durable steps: the intent with items and payments before the "machine" is
asked; then code, counters, tax lines and its link of a hash chain, what the book knows of its machine, and an event. Its machine is a
function that returns at once: no line, no protocol, no queue, and no promise about crashes.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

import uvicorn
from anyio import to_thread
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from sqlalchemy import ForeignKey, Index, create_engine, event, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from sqlalchemy.pool import QueuePool

KEY = "bench-key"
IFU = "00084440Y"
POOL = 64
RATES = {"A": 0, "B": 18, "C": 10}

bearer = HTTPBearer()

Group = Literal["A", "B", "C"]


class Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class ItemIn(Wire):
    name: str = Field(min_length=1, max_length=200)
    code: str = ""
    tax_group: Group
    unit_price: Decimal
    quantity: Decimal
    amount_ttc: int = Field(gt=0)


class PaymentIn(Wire):
    method: Literal["E", "V", "C", "M", "B", "A"]
    amount: int = Field(gt=0)


class CustomerIn(Wire):
    client_type: Literal["CC", "PP", "PM", "PC"] = "CC"
    ifu: str = ""
    name: str = ""
    address: str = ""
    phone: str = ""
    email: str = ""
    rccm: str = ""


class InvoiceIn(Wire):
    invoice_number: str = Field(min_length=1, max_length=40)
    invoice_type: Literal["FV", "FT", "EV", "ET"]
    operator_id: str = "1"
    operator_name: str = ""
    customer: CustomerIn = CustomerIn()
    items: list[ItemIn] = Field(min_length=1, max_length=1000)
    payments: list[PaymentIn] = Field(min_length=1)


class TaxDetail(Wire):
    group: str
    ht: int
    tva: int
    ttc: int


class Receipt(Wire):
    code_secef: str
    invoice_number: str
    invoice_type: str
    total_ttc: int
    date_time: str
    tax_details: list[TaxDetail]
    tc: int
    fvc: int


class Base(DeclarativeBase):
    pass


class ApiKey(Base):
    __tablename__ = "api_key"

    hash: Mapped[str] = mapped_column(primary_key=True)
    nim: Mapped[str]


class Book(Base):
    __tablename__ = "book"

    nim: Mapped[str] = mapped_column(primary_key=True)
    tc: Mapped[int] = mapped_column(default=0)
    fvc: Mapped[int] = mapped_column(default=0)
    last_number: Mapped[str] = mapped_column(default="")
    last_seq: Mapped[int] = mapped_column(default=0)
    head: Mapped[str] = mapped_column(default="")


class Certification(Base):
    __tablename__ = "certification"

    id: Mapped[int] = mapped_column(primary_key=True)
    nim: Mapped[str]
    seq: Mapped[int | None]
    state: Mapped[str]
    number: Mapped[str]
    type: Mapped[str]
    operator_id: Mapped[str]
    operator_name: Mapped[str]
    customer_ifu: Mapped[str]
    customer_name: Mapped[str]
    customer_address: Mapped[str]
    customer_phone: Mapped[str]
    customer_email: Mapped[str]
    customer_rccm: Mapped[str]
    total_ttc: Mapped[int]
    begun_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    duration_ms: Mapped[int | None]
    code: Mapped[str | None] = mapped_column(index=True)
    machine_time: Mapped[str | None]
    ifu: Mapped[str | None]
    tc: Mapped[int | None]
    fvc: Mapped[int | None]
    hash: Mapped[str | None]
    items: Mapped[list[Item]] = relationship()
    payments: Mapped[list[Payment]] = relationship()
    taxes: Mapped[list[Tax]] = relationship()

    __table_args__ = (Index("number_once", "nim", "number", unique=True), Index("in_order", "nim", "seq", unique=True))


class PartOfCertification:
    id: Mapped[int] = mapped_column(primary_key=True)
    certification_id: Mapped[int] = mapped_column(ForeignKey("certification.id"), index=True)


class Item(PartOfCertification, Base):
    __tablename__ = "item"

    name: Mapped[str]
    code: Mapped[str]
    tax_group: Mapped[str]
    unit_price: Mapped[int]
    quantity: Mapped[int]
    amount: Mapped[int]


class Payment(PartOfCertification, Base):
    __tablename__ = "payment"

    method: Mapped[str]
    amount: Mapped[int]


class Tax(PartOfCertification, Base):
    __tablename__ = "tax"

    group: Mapped[str]
    ht: Mapped[int]
    tva: Mapped[int]
    ttc: Mapped[int]


class Event(Base):
    __tablename__ = "event"

    id: Mapped[int] = mapped_column(primary_key=True)
    nim: Mapped[str]
    type: Mapped[str]
    certification_id: Mapped[int]
    at: Mapped[datetime]


def engine_of(path: str) -> Engine:
    """As SQLAlchemy's manual has it for SQLite with many writers: transactions begun by hand, and immediately."""
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=POOL,
        connect_args={"check_same_thread": False, "timeout": 60},
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def taxes_of(invoice: InvoiceIn) -> list[TaxDetail]:
    sums: dict[str, int] = {}
    for item in invoice.items:
        sums[item.tax_group] = sums.get(item.tax_group, 0) + item.amount_ttc
    details = []
    for group, ttc in sorted(sums.items()):
        rate = RATES[group]
        ht = (200 * ttc + 100 + rate) // (2 * (100 + rate))
        details.append(TaxDetail(group=group, ht=ht, tva=ttc - ht, ttc=ttc))
    return details


def intent(nim: str, invoice: InvoiceIn, total: int) -> Certification:
    return Certification(
        nim=nim,
        number=invoice.invoice_number,
        type=invoice.invoice_type,
        state="begun",
        operator_id=invoice.operator_id,
        operator_name=invoice.operator_name,
        customer_ifu=invoice.customer.ifu,
        customer_name=invoice.customer.name,
        customer_address=invoice.customer.address,
        customer_phone=invoice.customer.phone,
        customer_email=invoice.customer.email,
        customer_rccm=invoice.customer.rccm,
        total_ttc=total,
        begun_at=datetime.now(UTC),
        items=[
            Item(
                name=item.name,
                code=item.code,
                tax_group=item.tax_group,
                unit_price=int(item.unit_price * 100),
                quantity=int(item.quantity * 1000),
                amount=item.amount_ttc,
            )
            for item in invoice.items
        ],
        payments=[Payment(method=payment.method, amount=payment.amount) for payment in invoice.payments],
    )


def outcome(session: Session, record: Certification, invoice: InvoiceIn, taxes: list[TaxDetail], began: float) -> None:
    """What the machine said, the book's counters and its chain, and the event."""
    book = session.get_one(Book, record.nim)
    book.tc += 1
    book.fvc += 1
    book.last_seq += 1
    book.last_number = record.number
    record.state, record.seq = "certified", book.last_seq
    record.tc, record.fvc, record.ifu = book.tc, book.fvc, IFU
    record.code, record.machine_time = secrets.token_hex(12).upper(), f"{datetime.now(UTC):%Y%m%d%H%M%S}"
    record.ended_at = datetime.now(UTC)
    record.duration_ms = round((time.perf_counter() - began) * 1000)
    told = f"{record.seq}|{record.code}|{record.machine_time}|{record.tc}|{invoice.model_dump_json()}"
    record.hash = book.head = hashlib.sha256((book.head + told).encode()).hexdigest()
    record.taxes = [Tax(group=tax.group, ht=tax.ht, tva=tax.tva, ttc=tax.ttc) for tax in taxes]
    session.add(Event(nim=record.nim, type="cert.issued", certification_id=record.id, at=record.ended_at))


def certify(engine: Engine, nim: str, invoice: InvoiceIn, key: str) -> Receipt:
    began = time.perf_counter()
    total = sum(item.amount_ttc for item in invoice.items)
    if total != sum(payment.amount for payment in invoice.payments):
        raise HTTPException(422, "payments")
    taxes = taxes_of(invoice)
    with Session(engine, expire_on_commit=False) as session:
        owner = session.scalar(select(ApiKey.nim).where(ApiKey.hash == hashlib.sha256(key.encode()).hexdigest()))
        if owner != nim:
            raise HTTPException(401 if owner is None else 403)
        record = intent(nim, invoice, total)
        session.add(record)
        try:
            session.commit()
        except IntegrityError:
            raise HTTPException(409, "duplicate") from None
        outcome(session, record, invoice, taxes, began)
        session.commit()
    return Receipt(
        code_secef=record.code or "",
        invoice_number=record.number,
        invoice_type=record.type,
        total_ttc=total,
        date_time=record.machine_time or "",
        tax_details=taxes,
        tc=record.tc or 0,
        fvc=record.fvc or 0,
    )


def create_app(path: str, nims: list[str]) -> FastAPI:
    engine = engine_of(path)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Book(nim=nim) for nim in nims])
        session.add_all([ApiKey(hash=hashlib.sha256(f"{KEY}-{nim}".encode()).hexdigest(), nim=nim) for nim in nims])
        session.commit()

    @asynccontextmanager
    async def threads_enough(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = POOL
        yield

    app = FastAPI(lifespan=threads_enough)

    @app.post("/v1/mcf/{nim}/certify")
    def certify_invoice(
        nim: str, invoice: InvoiceIn, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]
    ) -> Receipt:
        return certify(engine, nim, invoice, credentials.credentials)

    return app


if __name__ == "__main__":
    ledger, port, *machines = sys.argv[1:]
    uvicorn.run(create_app(ledger, machines), host="127.0.0.1", port=int(port), access_log=False, log_level="warning")
