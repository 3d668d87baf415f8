"""The tills of docs/integrate.md, run as they stand there against a real daemon; and what its tables say."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.http_answers import Answer, Request, answering, json_answer, passed_on
from support.rehearsals import rehearsed_cases
from support.shop import NIM, Machine, Shop
from support.tools import need

from daemon.api.access.rehearsal import CASES
from daemon.api.problems import HTTP_CODES, KINDS

DOCS = Path(__file__).parents[3] / "docs"
PAGE_CASES = rehearsed_cases()
PAGES = (DOCS / "integrate.md", DOCS / "integrate.fr.md")
TILLS = {
    "python": (sys.executable, "till.py"),
    "node": ("node", "till.mjs"),
    "php": ("php", "till.php"),
    "csharp": ("mono", "till.exe"),
}


def till(shop: Shop, language: str, number: str, **more: str) -> subprocess.Popen[str]:
    program, file = TILLS[language]
    if language != "python":
        need(program)
    environ = {**os.environ, "MCFD_URL": f"http://127.0.0.1:{shop.port}", "MCFD_KEY": shop.key(), "MCFD_NIM": NIM}
    place = compiled(shop.folder) if language == "csharp" else DOCS / "tills"
    command = [program, str(place / file), number]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**environ, **more})


def compiled(folder: Path) -> Path:
    """Where the C# till is as a program."""
    if (folder / "till.exe").exists():
        return folder
    need("mcs")
    references = ("-r:System.Net.Http", "-r:System.Runtime.Serialization")
    command = [
        "mcs",
        "-nowarn:649",
        "-warnaserror",
        *references,
        f"-out:{folder}/till.exe",
        str(DOCS / "tills/till.cs"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return folder


@pytest.mark.parametrize("language", TILLS)
def test_a_whole_till(shop: Shop, language: str) -> None:
    """Each till of the page sells, prints, credits and closes, without one warning; and the machine has both invoices once."""
    number = f"T-{language}"
    shop.close_period()
    before = shop.machines[0].counters[0]
    out, errors = till(shop, language, number).communicate(timeout=120)
    assert errors == ""
    certified, *_, credited, closed = out.splitlines()
    assert re.fullmatch(rf"certified {number} [A-Z0-9]{{24}} 30600", certified)
    assert "FACTURE DE VENTE" in out
    assert re.fullmatch(r"credited [A-Z0-9]{24}", credited)
    assert re.fullmatch(r"closed Z \d+ 30000", closed)
    assert [entry["number"] for entry in shop.machines[0].certified(before)] == [number, f"{number}-A"]


PROBLEM = {"Content-Type": "application/problem+json"}
PAGE = {"Content-Type": "text/html", "Retry-After": "Fri, 31 Dec 2027 23:59:59 GMT"}
LOST = {
    "haproxy": Answer(502, b'{"code":"BAD_GATEWAY","detail":"again"}', PROBLEM),
    "page": Answer(503, b"<html>503 Service Unavailable</html>", PAGE),
    "other json": json_answer(504, {"message": "upstream timed out"}),
    "no object": json_answer(502, None),
    "cut": Answer(200, b'{"codeSecef":"ABCD', {"Content-Type": "application/json", "Content-Length": "500"}),
}
"""What stands between till and box says when the box's own answer is lost on the way: as HAProxy where mcfd ends, or somebody's proxy."""


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=pytest.mark.long) if how != "haproxy" else how for how in LOST]
)
@pytest.mark.parametrize("language", TILLS)
def test_a_lost_answer_is_fetched_again(shop: Shop, language: str, how: str) -> None:
    """Whatever comes instead of it: the same request again with the same key, and the sale is certified once."""
    number = f"L-{language}-{how}"
    before = shop.machines[0].counters[0]
    lost: list[str] = []

    def between(request: Request) -> Answer:
        found = passed_on(request, str(shop.http.base_url))
        if request.method == "POST" and not lost:
            lost.append(request.path)
            return LOST[how]
        return found

    with answering(between) as url:
        out, errors = till(shop, language, number, MCFD_URL=url).communicate(timeout=120)
    assert errors == ""
    assert out.startswith(f"certified {number} ")
    assert [entry["number"] for entry in shop.machines[0].certified(before)] == [number, f"{number}-A"]


@pytest.mark.parametrize(
    "code",
    [
        "PAIR_NOT_COMPARED",
        *(pytest.param(code, marks=pytest.mark.long) for code in ("LEDGER_DAMAGED", "BOX_AMBIGUOUS")),
    ],
)
@pytest.mark.parametrize("language", TILLS)
def test_what_needs_a_person_is_said_at_once(shop: Shop, language: str, code: str) -> None:
    """A 503 that no wait ends is sent once."""
    count: list[str] = []

    def box(request: Request) -> Answer:
        count.append(request.path)
        return json_answer(503, {"code": code, "status": 503, "detail": "somebody has to look"})

    with answering(box) as url:
        out, errors = till(shop, language, "P-1", MCFD_URL=url).communicate(timeout=200)
    assert f"{code}: somebody has to look" in out + errors
    assert count == [f"/v1/mcf/{NIM}/certify"]


@pytest.mark.long
def test_each_till_meets_every_case_of_the_page(tmp_path: Path) -> None:
    """With `MCFD_TEST` each till of the page ends with its invoice certified, or says what a person has to do; never in a wait."""
    nims = {language: f"EL0200001{at}-1" for at, language in enumerate(TILLS)}
    machines = tuple(Machine(tmp_path, nim) for nim in nims.values())  # never started: the sandbox needs none
    with Shop(tmp_path, machines=machines) as shop, ThreadPoolExecutor() as pool:
        for nim in nims.values():
            shop.key("test", nim)
        shop.start_daemon(ready=False)
        for _ in pool.map(lambda language: meets_every_case(shop, language, nims[language]), TILLS):
            pass


def meets_every_case(shop: Shop, language: str, nim: str) -> None:
    for case in CASES.keys() - {"late", "blocked"}:  # to a till as `offline` and `refused`
        expected = CASES[case]
        more = {"MCFD_NIM": nim, "MCFD_KEY": shop.key("test", nim), "MCFD_TEST": f"{case}:1" if expected.most else case}
        with till(shop, language, f"T-{case}", **more) as process:
            out, errors = process.communicate(timeout=120)
        if expected.always:
            assert process.returncode != 0, out
            assert PAGE_CASES[case].code in out + errors
        else:
            assert errors == ""
            assert out.startswith(f"certified T-{case} TESTFACT"), out
            assert "closed Z" in out


def bodies(page: Path) -> list[dict[str, object]]:
    return [json.loads(text) for text in re.findall(r"```json\n(\{.*?)```", page.read_text(), re.DOTALL)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_body_of_the_page_is_taken(shop: Shop, page: Path) -> None:
    """Each request that the page shows is certified as it stands, even with `Mcfd-Strict`, and nothing in it needs a warning."""
    examples = bodies(page)
    assert len(examples) == 2
    sale, credit = examples
    strict = {"Mcfd-Strict": "true"}
    receipt = shop.certify({**sale, "invoiceNumber": page.name}, headers=strict).json()
    assert receipt["warnings"] == [], receipt
    reference = f"{NIM}-{receipt['fvc']}"
    changed = {**credit, "invoiceNumber": f"A-{page.name}", "creditNoteRef": reference}
    answer = shop.certify(changed, path="credit-note", headers=strict)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_has_its_line(page: Path) -> None:
    """The table says of each error code what the till does."""
    text = page.read_text()
    codes = {kind.code for kind in KINDS.values()} | {code for code, _ in HTTP_CODES.values()}
    assert {code for code in codes if f"`{code}`" not in text} == set()
