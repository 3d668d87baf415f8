"""What the API tells people, in their language (Accept-Language); what it tells programs, never."""

import re
from typing import Any

import pytest
from support.shop import NIM, Shop, invoice

URL = f"/v1/mcf/{NIM}"
WRONG = {
    "no key": ("GET", f"{URL}/reports/x", {"headers": {"Authorization": ""}}),
    "no such path": ("GET", f"{URL}/nothing", {}),
    "no printer": ("POST", f"{URL}/reports/x/print", {}),
    "a key of letters beyond ASCII": (
        "POST",
        f"{URL}/certify",
        {"json": invoice("L-0"), "headers": {"Idempotency-Key": "clé-1".encode()}},
    ),
    "bad range": ("GET", f"{URL}/reports/a?from=2026-02-01&to=2026-01-01", {}),
    "everything wrong": (
        "POST",
        f"{URL}/certify",
        {
            "json": {
                "invoiceNumber": " x ",
                "invoiceType": "XX",
                "customer": 5,
                "items": [{"name": "", "taxGroup": "Z", "quantity": 0}, 3],
                "payments": [{"method": "E", "amount": -1}],
                "comments": "x",
            }
        },
    ),
    "refused by strict": (
        "POST",
        f"{URL}/certify",
        {"json": invoice("L-1", prix=1), "headers": {"Mcfd-Strict": "true"}},
    ),
    "changed, which strict refuses": (
        "POST",
        f"{URL}/certify",
        {
            "json": invoice(
                "L-2",
                items=[{"name": "é" * 200, "taxGroup": "B", "unitPrice": 1000, "quantity": 3, "amountTtc": 5000}],
                payments=[{"method": "V", "amount": 5000}],
                stampDuty=50,
            ),
            "headers": {"Mcfd-Strict": "true"},
        },
    ),
    "a nature that strict wants": (
        "POST",
        f"{URL}/credit-note",
        {"json": invoice("L-3", invoiceType="FA", creditNoteRef="RRR"), "headers": {"Mcfd-Strict": "true"}},
    ),
}
ENGLISH = re.compile(r"\b(the|is|must|has|not|with|there|this|and|of|was|nothing)\b", re.IGNORECASE)


def translated(shop: Shop, name: str, language: str) -> dict[str, Any]:
    method, path, options = WRONG[name]
    headers = {**shop.headers(), "Accept-Language": language, **options.get("headers", {})}
    answer = shop.http.request(method, path, **{**options, "headers": headers})
    assert answer.status_code >= 400
    return answer.json()


def sentences(problem: dict[str, Any]) -> list[str]:
    return [problem["title"], problem["detail"], *(error["message"] for error in problem.get("errors", ()))]


@pytest.mark.parametrize("name", WRONG)
def test_every_error_is_told_in_french(shop: Shop, name: str) -> None:
    """`title`, `detail` and each message are French where the client asks for that; codes, fields and status stay."""
    french, english = (translated(shop, name, language) for language in ("fr-BF,fr;q=0.9,en;q=0.5", "en"))
    assert [text for text in sentences(french) if ENGLISH.search(text)] == []
    assert {key: french[key] for key in ("type", "status", "code")} == {
        key: english[key] for key in ("type", "status", "code")
    }
    assert [error["field"] for error in french.get("errors", ())] == [
        error["field"] for error in english.get("errors", ())
    ]
    assert french["error"] == french["detail"] != english["detail"]
