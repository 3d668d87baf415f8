"""One document of each kind, as `tickets/` shows them."""

from decimal import Decimal

from support.core_samples import recorded

from common.wire import closure
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.report import fiscal_reports
from daemon.core.report.articles import ArticlesReport, ArticleTotal
from daemon.paper.invoice import invoice_document
from daemon.paper.reports import articles_document, report_document
from daemon.paper.shop import Shop, Style

NIM = "EL02000015-1"
RATES = {"A": 0, "B": 1800, "C": 1000}
LABELS = {
    "fr": {"E": "Espèces", "M": "Mobile money"},
    "en": {"E": "Cash", "M": "Mobile money"},
}


def shop(language="fr", **fields):
    return Shop(
        **{
            "nim": NIM,
            "ifu": "00084440Y",
            "isf": "ISF1",
            "name": "Alimentation Wend-Panga",
            "address": ("Avenue Kwamé N'Krumah", "Ouagadougou"),
            "cadastral": "12340560078",
            "phone": "+226 70 00 00 00",
            "email": "wendpanga@example.bf",
            "accounts": ("BF074 01001 000012345678",),
            "regime": "RNI",
            "tax_office": "DME Centre I",
            "labels": LABELS[language],
            **fields,
        }
    )


def record(body, *, credit=False, **fields):
    defaults = Defaults(operator_id="7", operator_name="Awa Ouédraogo", isf="ISF1")
    invoice = read_invoice(body, defaults=defaults, rates=RATES, credit=credit)
    own = {
        "begun_at": 1_795_169_730_000,
        "ended_at": 1_795_169_730_000,
        "code": "7C0MWH2RQJ4T9XK3VZ5B8NDP",
        "machine_time": "20261120101530",
        "fc": 1 if credit else 9,
    }
    return recorded(invoice, **own, **fields)


SALE = {
    "invoiceNumber": "FV-2026-0001",
    "invoiceType": "FV",
    "customer": {
        "clientType": "PM",
        "ifu": "00012345X",
        "name": "Société du Faso SARL",
        "address": "Zone industrielle de Kossodo, Ouagadougou",
        "phone": "+226 25 00 00 00",
    },
    "items": [
        {
            "name": "Riz 25 kg",
            "taxGroup": "B",
            "unitPrice": 15000,
            "quantity": 2,
            "code": "R25",
            "unit": "sac",
            "originalPrice": 16000,
        },
        {
            "name": "Ciment CPJ 45, sac de 50 kg, rendu sur chantier",
            "taxGroup": "C",
            "amountTtc": 78000,
            "quantity": 12,
        },
        {
            "name": "Boisson",
            "taxGroup": "B",
            "unitPrice": 1050,
            "quantity": 2,
            "amountTtc": 2218,
            "specificTax": 100,
            "specificTaxRate": 50,
            "specificTaxDesc": "Taxe boisson",
        },
        {"name": "Tomates", "taxGroup": "A", "unitPrice": Decimal("812.5"), "quantity": Decimal("1.6")},
    ],
    "payments": [{"method": "E", "amount": 100000}, {"method": "M", "amount": 11518}],
    "comments": [{"label": "A", "text": "Décision 2026/114"}, {"label": "C", "text": "Merci de votre visite"}],
    "psvbGroup": "C",
    "stampDuty": 100,
}
CREDIT = {
    "invoiceNumber": "FA-2026-0003",
    "invoiceType": "FA",
    "creditNoteNature": "RAM",
    "creditNoteRef": f"{NIM}-9",
    "items": [{"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000}],
    "payments": [{"method": "E", "amount": 15000}],
}
WITHOUT_TAX = {
    "invoiceNumber": "FV-2026-0002",
    "invoiceType": "FV",
    "priceMode": "HT",
    "items": [{"name": "Conseil", "itemType": "LOCSER", "taxGroup": "B", "unitPrice": 1_000_000, "quantity": 3}],
    "payments": [{"method": "M", "amount": 3_540_000}],
}

_TOTALS = {
    "nim": NIM,
    "certs_count": 13,
    "total_ttc": 1_085_000,
    "total_ht": 919_492,
    "total_tva": 165_508,
    "by_group": (closure.GroupTotal("B", 919_492, 165_508, 1_085_000),),
    "by_type": (closure.TypeTotal("FA", 1, 15_000), closure.TypeTotal("FV", 12, 1_100_000)),
    "by_type_and_group": (
        closure.TypeGroupTotal("FA", "B", 12_712, 2_288, 15_000),
        closure.TypeGroupTotal("FV", "A", 100_000, 0, 100_000),
        closure.TypeGroupTotal("FV", "B", 847_458, 152_542, 1_000_000),
    ),
    "by_payment": (
        closure.PaymentTotal("E", "Espèces", 885_000),
        closure.PaymentTotal("M", "Mobile money", 200_000),
    ),
    "credit_notes": closure.CreditNotes(1, 15_000),
    "specific_tax": 100,
    "psvb": (closure.Withholding("C", 69_000, 0.2, 138),),
    "incomplete": 2,
    "reductions": 4_000,
    "by_nature": (
        closure.NatureTotal("RAM", "Avoir suite reprise biens/services", 1, 13_000),
        closure.NatureTotal("RRR", "Remise, ristourne, rabais", 1, 2_000),
    ),
    "isfs": ("ISF1", "ISF2"),
    "stamp_duty": 150,
    "cash": closure.CashDrawer(20_000, 5_000, 900_000),
}
_PERIOD = {
    **_TOTALS,
    "period_start": "2026-11-20T07:00:00.000Z",
    "period_end": "2026-11-20T19:30:00.000Z",
    "fvc_start": 280,
    "fvc_end": 292,
}
X = fiscal_reports.XReport(kind="X", **_PERIOD)
Z = fiscal_reports.ZReport(
    kind="Z",
    **_PERIOD,
    z_number=12,
    report_id="5f0c7d8e-1111-4222-8333-944455556666",
    created_at="2026-11-20T19:30:00.000Z",
    mcf_counters=closure.CounterValues(310, 292, 12),
    unexplained=0,
    chain_previous="00" * 32,
)
A = fiscal_reports.AReport(
    kind="A",
    **_TOTALS,
    from_="2026-11-01T00:00:00.000Z",
    to="2026-11-21T00:00:00.000Z",
    closures=(fiscal_reports.ClosureSummary(12, Z.period_start, Z.period_end, 1_085_000, 13),),
)
ARTICLES = ArticlesReport(
    nim=NIM,
    from_="2026-11-01T00:00:00.000Z",
    to="2026-11-21T00:00:00.000Z",
    certs_count=13,
    articles=(
        ArticleTotal("Tomates", "", "A", Decimal("123.5"), Decimal(0), 100_000, 0, 100_000, "", Decimal("812.5")),
        ArticleTotal(
            "Riz 25 kg",
            "R25",
            "B",
            Decimal(66),
            Decimal(1),
            985_000,
            15_000,
            970_000,
            "Céréales",
            Decimal(15_000),
            "TTC",
            18,
        ),
    ),
)
PRINTED_AT = "2026-11-20T19:31:12.000Z"


def documents(language):
    """Each by the name of its file."""
    style = Style(language)
    times = {"printed_at": PRINTED_AT}
    owner = shop(language)
    return {
        "sale": invoice_document(record(SALE), owner, style),
        "sale-without-tax": invoice_document(record(WITHOUT_TAX), owner, style),
        "credit-note": invoice_document(record(CREDIT, credit=True), owner, style),
        "duplicate": invoice_document(record(SALE), owner, Style(language, is_duplicate=True)),
        "test": invoice_document(record(CREDIT, credit=True), shop(language, is_test=True), style),
        "x": report_document(X, owner, style, **times),
        "x-periodic": report_document(X, owner, style, periodic=True, **times),
        "z": report_document(Z, owner, style, **times),
        "a": report_document(A, owner, style, **times),
        "articles": articles_document(ARTICLES, owner, style, **times),
    }
