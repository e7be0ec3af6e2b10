"""A statement as a document says what its figures are: compared with files that people read."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest

from analytics.statements import statement_of
from analytics.statements.statement import Change, Correction, Energy
from scheduler_advisor.errors import ReportError
from scheduler_advisor.statement import file_name, rendered

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(scope="session")
def bill(billed, october, now):
    """With versions of its own, so that a new version alone changes no golden file."""
    found = statement_of(billed, "Language", october, now=now)
    rules = replace(found.rules, rules_version="2", demand_profiles=["725808fc4cc2"])
    return replace(found, rules=rules)


def unstyled(page: str) -> str:
    """Without the style sheet, a tag per line: what a difference is about can be read."""
    return re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).replace("><", ">\n<")


@pytest.mark.parametrize(
    ("form", "language"), [("html", "en"), ("html", "ko"), ("csv", "en")]
)  # fmt: skip
def test_a_statement_is_the_golden_file(bill, form, language):
    """UNSTRAND_GOLDEN=1 writes the file anew; look at the difference before it is committed."""
    text = rendered(bill, form, language).decode()
    text = unstyled(text) if form == "html" else text
    golden = GOLDEN / f"statement-{language}.{form}"
    if os.environ.get("UNSTRAND_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_nothing_of_a_name_or_a_reason_is_taken_for_markup(bill):
    page = rendered(bill, "html").decode()
    assert "big-1 was &lt;slow&gt; &amp; hot" in page
    assert "<slow>" not in page


def test_the_page_asks_for_nothing_outside_itself(bill):
    page = rendered(bill, "html").decode()
    assert not re.search(r"(src|href)=|url\((?!#)", page)


def test_a_spreadsheet_takes_no_text_for_a_formula(bill):
    rows = list(csv.DictReader(StringIO(rendered(bill, "csv").decode())))
    texts = [row[name] for row in rows for name in ("item", "team", "detail")]
    assert not [text for text in texts if text.startswith(("=", "+", "@"))]
    assert any("=cmd" in text for text in texts)


def test_the_lines_of_the_csv_add_up_to_its_total(bill):
    rows = list(csv.DictReader(StringIO(rendered(bill, "csv").decode())))
    paid = sum(Decimal(row["amount"]) for row in rows if row["charged"] == "yes")
    (total,) = [Decimal(row["amount"]) for row in rows if row["section"] == "total"]
    assert paid == total == bill.total


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_pdf_says_the_amount_due(bill, language, tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is missing: the text of the PDF is not read")
    file = tmp_path / "bill.pdf"
    file.write_bytes(rendered(bill, "pdf", language))
    told = subprocess.run(["pdftotext", file, "-"], capture_output=True, text=True, check=True)
    assert f"{bill.total:,}" in told.stdout
    assert bill.statement_id in told.stdout


def test_a_form_that_does_not_exist_is_refused(bill):
    with pytest.raises(ReportError, match="html, pdf, csv, json"):
        rendered(bill, "docx")


def test_a_files_name_leads_out_of_no_folder(billed, october, now):
    bill = statement_of(billed, "language", october, now=now)
    assert file_name(bill, "pdf") == "statement-language-2026-10.pdf"
    assert file_name(replace(bill, team="../../etc/x"), "csv") == (
        "statement-______etc_x-2026-10.csv"
    )
    assert file_name(replace(bill, team=None), "csv") == "platform-statement-2026-10.csv"


def test_a_version_shows_what_it_changes_and_energy_its_kind(bill):
    changes = [
        Change("class", "used", Decimal("600.00"), Decimal("638.15")),
        Change("adjustment", "A-0001", None, Decimal("-20.50")),
    ]
    second = replace(
        bill, version=2, corrects=Correction(1, "0123456789ab", Decimal("17.65"), changes),
        energy=Energy(Decimal("1234.5"), Decimal("493800"), "modelled"),
    )  # fmt: skip
    assert second.statement_id != bill.statement_id, "its energy is part of what it says"
    same = replace(bill, version=2, corrects=second.corrects)
    assert same.statement_id == bill.statement_id, "versions are not"
    page = unstyled(rendered(second, "html").decode())
    assert (
        "Version 2: it takes the place of version 1 (0123456789ab). "
        "Difference of the amount due: +17.65 USD." in page
    )
    for cell in ("600.00", "638.15", "+38.15", "A-0001", "-20.50"):
        assert f">{cell}<" in page
    assert ">1,234.5 kWh<" in page
    assert ">493.8 kg CO2e<" in page
    assert f"{second.statement_id} v2" in page
    assert "제2판" in rendered(second, "html", "ko").decode()
    rows = list(csv.DictReader(StringIO(rendered(second, "csv").decode())))
    told = [(r["section"], r["item"], r["amount"], r["charged"]) for r in rows]
    assert ("correction", "class: used", "38.15", "no") in told
    assert ("correction", "total", "17.65", "no") in told
    energy = {r["item"]: (r["detail"], r["number"]) for r in rows if r["section"] == "energy"}
    assert energy == {"kWh": ("1234.5", "modelled"), "g CO2e": ("493800", "modelled")}
    paid = sum(Decimal(r["amount"]) for r in rows if r["charged"] == "yes")
    assert paid == bill.total, "information is not charged"
