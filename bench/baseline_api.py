"""The endpoint that row 7 is compared with: FastAPI, SQLAlchemy, SQLite with WAL and FULL, a pool of 64; as a guide would write it.

    python -m bench.baseline_api LEDGER PORT

It stores what mcfd stores of a certification: the intent, its items, payments and tax lines before the "machine" is asked, code,
counters and totals after it, each durably. Its machine is a function that returns at once: no line, no protocol.
"""

from __future__ import annotations

import secrets
import sqlite3
import sys
import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from sqlalchemy import ForeignKey, Index, create_engine, event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from sqlalchemy.pool import QueuePool

KEY = "bench-key"
POOL = 64
RATES = {"A": 0, "B": 18, "C": 10}

bearer = HTTPBearer()

Group = Literal["A", "B", "C"]


class Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class ItemIn(Wire):
    name: str = Field(min_length=1, max_length=200)
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


class Certification(Base):
    __tablename__ = "certification"

    id: Mapped[int] = mapped_column(primary_key=True)
    nim: Mapped[str]
    number: Mapped[str]
    type: Mapped[str]
    state: Mapped[str]
    operator_id: Mapped[str]
    operator_name: Mapped[str]
    customer_ifu: Mapped[str]
    customer_name: Mapped[str]
    total_ttc: Mapped[int]
    begun_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    code: Mapped[str | None] = mapped_column(index=True)
    machine_time: Mapped[str | None]
    tc: Mapped[int | None]
    fvc: Mapped[int | None]
    items: Mapped[list[Item]] = relationship()
    payments: Mapped[list[Payment]] = relationship()
    taxes: Mapped[list[Tax]] = relationship()

    __table_args__ = (Index("number_once", "nim", "number", unique=True),)


class Item(Base):
    __tablename__ = "item"

    id: Mapped[int] = mapped_column(primary_key=True)
    certification_id: Mapped[int] = mapped_column(ForeignKey("certification.id"), index=True)
    name: Mapped[str]
    tax_group: Mapped[str]
    unit_price: Mapped[int]
    quantity: Mapped[int]
    amount: Mapped[int]


class Payment(Base):
    __tablename__ = "payment"

    id: Mapped[int] = mapped_column(primary_key=True)
    certification_id: Mapped[int] = mapped_column(ForeignKey("certification.id"), index=True)
    method: Mapped[str]
    amount: Mapped[int]


class Tax(Base):
    __tablename__ = "tax"

    id: Mapped[int] = mapped_column(primary_key=True)
    certification_id: Mapped[int] = mapped_column(ForeignKey("certification.id"), index=True)
    group: Mapped[str]
    ht: Mapped[int]
    tva: Mapped[int]
    ttc: Mapped[int]


class Counter:
    """The machine: says yes at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tc = 0

    def certify(self) -> tuple[str, str, int]:
        with self._lock:
            self._tc += 1
            return secrets.token_hex(12).upper(), f"{datetime.now(UTC):%Y%m%d%H%M%S}", self._tc


def engine_of(path: str) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=POOL,
        connect_args={"check_same_thread": False, "timeout": 60},
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

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


def record_of(nim: str, invoice: InvoiceIn, total: int) -> Certification:
    return Certification(
        nim=nim,
        number=invoice.invoice_number,
        type=invoice.invoice_type,
        state="begun",
        operator_id=invoice.operator_id,
        operator_name=invoice.operator_name,
        customer_ifu=invoice.customer.ifu,
        customer_name=invoice.customer.name,
        total_ttc=total,
        begun_at=datetime.now(UTC),
        items=[
            Item(
                name=item.name,
                tax_group=item.tax_group,
                unit_price=int(item.unit_price * 100),
                quantity=int(item.quantity * 1000),
                amount=item.amount_ttc,
            )
            for item in invoice.items
        ],
        payments=[Payment(method=payment.method, amount=payment.amount) for payment in invoice.payments],
    )


def create_app(path: str) -> FastAPI:
    engine = engine_of(path)
    Base.metadata.create_all(engine)
    counter = Counter()
    app = FastAPI()

    @app.post("/v1/mcf/{nim}/certify")
    def certify(
        nim: str, invoice: InvoiceIn, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]
    ) -> Receipt:
        if not secrets.compare_digest(credentials.credentials, KEY):
            raise HTTPException(401)
        total = sum(item.amount_ttc for item in invoice.items)
        if total != sum(payment.amount for payment in invoice.payments):
            raise HTTPException(422, "payments")
        taxes = taxes_of(invoice)
        with Session(engine, expire_on_commit=False) as session:
            record = record_of(nim, invoice, total)
            session.add(record)
            try:
                session.commit()
            except IntegrityError:
                raise HTTPException(409, "duplicate") from None
            code, moment, tc = counter.certify()
            record.state, record.code, record.machine_time = "certified", code, moment
            record.tc = record.fvc = tc
            record.ended_at = datetime.now(UTC)
            record.taxes = [Tax(group=tax.group, ht=tax.ht, tva=tax.tva, ttc=tax.ttc) for tax in taxes]
            session.commit()
        return Receipt(
            code_secef=code, invoice_number=invoice.invoice_number, invoice_type=invoice.invoice_type, total_ttc=total,
            date_time=moment, tax_details=taxes, tc=tc, fvc=tc,
        )  # fmt: skip

    return app


if __name__ == "__main__":
    uvicorn.run(create_app(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), access_log=False, log_level="warning")
