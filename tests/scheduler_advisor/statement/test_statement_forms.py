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
