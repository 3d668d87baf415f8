"""The journal for a French spreadsheet."""

import csv
import html
import io
import re
import subprocess
from datetime import UTC

import pytest
from support.core_samples import body, item, record
from support.tools import need

from daemon.core.report.journal_csv import COLUMNS, csv_row, excel_header, excel_lines, excel_row


def opened(*records):
    """As a spreadsheet in French reads the file: semicolons, UTF-8 by its mark."""
    text = excel_header() + excel_lines(excel_row(csv_row(one, 7, "fr"), UTC) for one in records)
    content = text.encode().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content), delimiter=";"))


def test_a_french_spreadsheet_reads_it():
    """Every column has a French heading, dates are written as here, state and reason are words, amounts are figures."""
    (row,) = opened(record(body(item(name="Riz; 25 kg"))))
    assert len(row) == len(COLUMNS)
    assert (row["État"], row["Date de la MCF"], row["Fin"]) == (
        "certifiée",
        "05/01/2026 10:00:00",
        "05/01/2026 10:00:00",
    )
    assert (row["Total TTC"], row["TVA"], row["Espèces"], row["N° de Z"]) == ("15000", "2288", "15000", "7")
    (row,) = opened(record(state="abandoned", counters=None, reason="the machine does not answer"))
    assert row["Motif"] == "la machine ne répond pas"


@pytest.mark.long
def test_libreoffice_opens_it_and_runs_nothing(tmp_path):
    """Cells as a French LibreOffice has them: amounts are numbers, dates are dates, a name that looks like a formula is a text."""
    need("soffice")
    customer = {"clientType": "PP", "name": "=1+1"}
    text = excel_header() + excel_lines([excel_row(csv_row(record(body(customer=customer)), 7), UTC)])
    (tmp_path / "journal.csv").write_text(text, encoding="utf-8", newline="")
    command = [
        *("soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--norestore"),
        *("--infilter=CSV:59,34,76,1,,1036,false,true", "--convert-to", "fods", "--outdir", str(tmp_path)),
        str(tmp_path / "journal.csv"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    cells = cells_of((tmp_path / "journal.fods").read_text())
    headings = [view for _, view in cells[0]]
    row = dict(zip(headings, cells[1], strict=False))
    assert row["Total TTC"] == ("float", "15000")
    assert row["TVA"] == ("float", "2288")
    assert row["Date de la MCF"][0] == "date"
    assert row["Client"] == ("string", "'=1+1")
    assert "table:formula" not in (tmp_path / "journal.fods").read_text()


def cells_of(document):
    """Type and shown text of each cell, row by row."""
    rows = []
    for row in re.findall(r"<table:table-row.*?</table:table-row>", document, re.DOTALL):
        cells = re.findall(r"<table:table-cell(?: ([^>]*?))?(?:/>|>(.*?)</table:table-cell>)", row, re.DOTALL)
        found = []
        for attributes, content in cells:
            kind = re.search(r'office:value-type="(\w+)"', attributes or "")
            repeated = re.search(r'number-columns-repeated="(\d+)"', attributes or "")
            text = html.unescape(re.sub(r"<[^>]+>", "", content or "")).strip()
            found += [(kind[1] if kind else "", text)] * (min(int(repeated[1]), 50) if repeated else 1)
        rows.append(found)
    return rows
