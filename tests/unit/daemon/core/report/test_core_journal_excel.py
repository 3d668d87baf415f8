"""The journal for a French spreadsheet."""

import csv
import io
from datetime import UTC

import pytest
from support.core_samples import body, item, record

from daemon.core.report.journal_csv import COLUMNS, csv_row
from daemon.core.report.journal_excel import HEADINGS, excel_header, excel_lines, excel_row


def opened(*records):
    """As a spreadsheet in French reads the file: semicolons, UTF-8 by its mark."""
    text = excel_header() + excel_lines(excel_row(csv_row(one, 7), UTC) for one in records)
    content = text.encode().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content), delimiter=";"))


def test_a_french_spreadsheet_reads_it():
    """Every column has a French heading, dates are written as here, the state is a word, amounts are figures."""
    (row,) = opened(record(body(item(name="Riz; 25 kg"))))
    assert len(row) == len(COLUMNS) == len(set(HEADINGS.values()))
    assert (row["État"], row["Date de la MCF"], row["Fin"]) == (
        "certifiée",
        "05/01/2026 10:00:00",
        "05/01/2026 10:00:00",
    )
    assert (row["Total TTC"], row["TVA"], row["Espèces"], row["N° de Z"]) == ("15000", "2288", "15000", "7")


@pytest.mark.parametrize(
    "name", ["=1+1", ";=1+1", ' "=cmd', "\N{NO-BREAK SPACE}=1", "＝1+1", "＋1", "@SUM(A1)", "-2", "';=1"]
)
def test_nothing_in_a_name_is_run(name):
    """A cell that a spreadsheet would take for a formula begins with an apostrophe, also after what it skips."""
    customer = {"clientType": "PP", "name": name}
    (row,) = opened(record(body(customer=customer)))
    assert row["Client"].startswith("'")
    assert row["Client"].replace("'", "") == name.replace("'", "")


def test_a_name_stays_as_it_is():
    """Nothing is put in front of an ordinary name."""
    (row,) = opened(record(body(customer={"clientType": "PP", "name": "O'Brien & Fils; Ouaga"})))
    assert row["Client"] == "O'Brien & Fils; Ouaga"
