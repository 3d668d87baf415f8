"""The dossier of homologation: every clause of the texts has its line and its test, every case comes as it says."""

import io
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pypdf
import pytest
from support.shop import IFU, NIM, Machine, Shop, running_shop, wait_for

from daemon.homologation.cases import CannotPlay, CasePlayer, read_cases
from daemon.homologation.dossier import read_texts

TREE = Path(__file__).parents[3]
SFE = {
    *(f"2.{number}" for number in range(1, 36) if number not in {3, 7}),  # there is no 2.3 and 2.7: headings of 2.2 and 2.8
    *(f"3 {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
    "4.1", "4.2", *(f"4.3 {letter}" for letter in "abcdefghijklm"),
    "5.1", *(f"5.2 {letter}" for letter in "abcdef"),
    *(f"6.{number}" for number in range(1, 11)),
    "7 clients", "7 articles", "7 avoirs", "7 commentaires",
}  # fmt: skip
ARTICLE_23 = {"23 inaltérabilité", "23 sécurisation", "23 conservation", "23 archivage"}
ARTICLES_6_AND_7 = {*(f"6 {letter}" for letter in "abcdefghi"), *(f"7 {letter}" for letter in "abcdefgh")}


def test_each_clause_of_the_texts_has_one_line() -> None:
    """SFE 2.1 to 6.10 and the annex, article 23 of arrêté 0047, articles 6 and 7 of arrêté 0049: no clause without a line, none twice."""
    lines = {text.name: [clause.number for clause in text.clauses] for text in read_texts()}
    assert all(len(numbers) == len(set(numbers)) for numbers in lines.values())
    assert {name: set(numbers) for name, numbers in lines.items()} == {
        "SFE": SFE,
        "0047": ARTICLE_23,
        "0049": ARTICLES_6_AND_7,
    }


def test_what_mcfd_does_names_the_test_that_shows_it() -> None:
    """The file is there, and the test in it."""
    for text in read_texts():
        for clause in text.clauses:
            assert not clause.by.startswith("mcfd") or (clause.answer and clause.test), clause.number
            file, _, name = clause.test.partition("::")
            assert not file or (TREE / file).is_file(), clause.test
            assert not name or re.search(rf"def {name}\b", (TREE / file).read_text(encoding="utf-8")), clause.test


def test_each_case_answers_clauses_that_there_are() -> None:
    """Cases have names of their own, and clauses of the table."""
    numbers = {clause.number for text in read_texts() for clause in text.clauses}
    cases = read_cases()
    assert len({case.id for case in cases}) == len(cases)
    assert {number for case in cases for number in case.clauses} <= numbers


def _client(shop: Shop, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"{shop.http.base_url}/v1/mcf/{NIM}/", headers={"Authorization": f"Bearer {key}"}, timeout=60
    )


def test_each_case_comes_as_expected(shop: Shop) -> None:
    """All of them, on the sandbox, where failures can be rehearsed too."""
    key = shop.mcfd("keys", "create", "--nim", NIM, "--test").stdout.strip()
    with _client(shop, key) as client:
        results = list(CasePlayer(client, "H1").play(read_cases()))
    assert [result for result in results if result.state != "passed"] == []


def test_credit_notes_come_as_expected_where_each_type_has_its_own_counter(tmp_path: Path) -> None:
    """A sale and an export may then have one counter: the case names the sale by its number too, so none is a false failure."""
    machine = Machine(tmp_path, NIM, IFU, "--test-mode", "--fc-per-type", "--fvc-local")
    cases = [case for case in read_cases() if re.fullmatch("[FE][AVT](-.*)?", case.id)]
    shop = Shop(tmp_path, machines=(machine,), per_machine={"test_mode": True})
    with shop, _client(shop.start(), shop.key()) as client:
        results = list(CasePlayer(client, "H5", is_test_mode=True).play(cases))
    assert {result.id: result.state for result in results} == dict.fromkeys([case.id for case in cases], "passed")


def test_the_documents_are_in_french_whatever_the_box_speaks(tmp_path: Path) -> None:
    """Procedure, 3.2; and a box that takes sales on for later while its machine is out of order shows the regularisation as well."""
    config, papers = {"server": {"language": "en"}}, tmp_path / "papers"
    papers.mkdir()
    with running_shop(tmp_path, config=config, per_machine={"when_out_of_order": "defer"}) as shop:
        with _client(shop, shop.key("test")) as client:
            cases = [case for case in read_cases() if case.id in {"FV", "PANNE", "Z"}]
            results = list(CasePlayer(client, "H4", papers).play(cases))
        assert [result for result in results if result.state != "passed"] == []
    for name, title in {"FV": "FACTURE DE VENTE", "PANNE": "Régularisation de la vente", "Z": "RAPPORT Z"}.items():
        text = pypdf.PdfReader(papers / f"{name}.pdf").pages[0].extract_text()
        assert title in text
        assert "SANS VALEUR FISCALE" in text
        assert " / " not in text


def test_a_machine_in_use_is_left_alone(shop: Shop) -> None:
    """A live machine that is not in test mode: nothing is certified; where somebody says that it is, no more than one."""
    with _client(shop, shop.headers()["Authorization"].partition(" ")[2]) as client:
        with pytest.raises(CannotPlay):
            CasePlayer(client, "H2")
        assert shop.get("reports/x").json()["certs_count"] == 0
        with pytest.raises(CannotPlay):
            list(CasePlayer(client, "H3", is_test_mode=True).play(read_cases()))
        wait_for(lambda: shop.get("reports/x").json()["certs_count"] == 1, "the totals")


@pytest.mark.long
def test_the_dossier_is_made(tmp_path: Path) -> None:
    """A run on a machine in test mode, its documents, then the folder: PDFs in French with their checksums, results in the table of cases."""
    folder = tmp_path / "dossier"
    machine = Machine(tmp_path, NIM, IFU, "--test-mode")
    with running_shop(tmp_path, machines=(machine,), per_machine={"test_mode": True}) as shop:
        key = shop.headers()["Authorization"].partition(" ")[2]
        command = [Path(sys.executable).with_name("mcfd"), "homologation"]
        url = f"{shop.http.base_url}/v1/mcf/{NIM}"
        ran = subprocess.run(
            [*command, "run", "--url", url, "--no-papers", "--machine-in-test-mode", "--into", folder],
            env={"MCFD_KEY": key, "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "à montrer à la main" in ran.stdout
    subprocess.run([*command, "make", "--into", folder], check=True, cwd=TREE)
    pages = {
        file.name: " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(file.read_bytes())).pages)
        for file in folder.glob("*.pdf")
    }
    assert pages.keys() == {
        "tableau-de-conformite.pdf", "cas-de-test.pdf", "manuel-d-utilisation.pdf", "manuel-de-controle.pdf", "brochure.pdf",
    }  # fmt: skip
    assert all(number.replace(" ", "") in "".join(pages["tableau-de-conformite.pdf"].split()) for number in SFE)
    assert "TESTFACT" in pages["cas-de-test.pdf"]
    assert "NON CONFORME : 0" in pages["cas-de-test.pdf"]
    sums = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert sums.returncode == 0
