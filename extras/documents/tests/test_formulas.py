"""Tables: what formulas, validations, conditions and filters compare with stays, so that results stay the same."""

from __future__ import annotations

import io
from pathlib import Path

import openpyxl
import pytest
from openpyxl.formatting.rule import CellIsRule
from openpyxl.worksheet.datavalidation import DataValidation

from tandem.extras.documents.formulas import ComparedTexts, literals_of
from tandem.extras.documents.tests.documents import members, segments, translated, with_members
from tandem.extras.files.tests.samples import SAMPLES, kept
from tandem.extras.files.tests.test_formats import in_capitals

COMPARED = ("rot", "gelb", "blau", "weiss", "braun", "hellgrün")
FORMULAS = ('=IF(A1="Rot","das ist rot","nein")', '=COUNTIF(A1:A9,"<>gelb")', '=COUNTIF(A1:A9,"hell*")')


def workbook() -> bytes:
    document = openpyxl.Workbook()
    sheet = document.active
    assert sheet is not None
    for text in (*COMPARED, "guten morgen", "rot und gelb"):
        sheet.append([text])
    for number, formula in enumerate(FORMULAS, 1):
        sheet.cell(number, 2, formula)
    choice = DataValidation(type="list", formula1='"blau, schwarz"')
    choice.add("C1")
    sheet.add_data_validation(choice)
    rule = CellIsRule(operator="equal", formula=['"weiss"'])  # type: ignore[no-untyped-call]
    sheet.conditional_formatting.add("A1:A9", rule)
    sheet.auto_filter.ref = "A1:A9"
    sheet.auto_filter.add_filter_column(0, ["braun"])
    return kept(document)


def test_cells_that_a_workbook_compares_stay(tmp_path: Path) -> None:
    content = workbook()
    assert [one.text for one in segments(tmp_path, "xlsx", content)] == ["guten morgen", "rot und gelb"]
    assert members(translated(tmp_path, "xlsx", content)) == members(content)
    sheet = openpyxl.load_workbook(io.BytesIO(in_capitals(tmp_path, "xlsx", content))).active
    assert sheet is not None
    assert [sheet.cell(row, 1).value for row in range(1, 9)] == [*COMPARED, "GUTEN MORGEN", "ROT UND GELB"]
    assert [sheet.cell(row, 2).value for row in range(1, 4)] == [*FORMULAS]


@pytest.mark.parametrize(
    "attribute",
    [
        'table:formula="of:=IF([.A1]=&quot;guten morgen&quot;;1;2)"',
        'table:condition="of:cell-content-is-in-list(&quot;x&quot;;&quot;Guten Morgen&quot;)"',
        'table:value="guten morgen"',
    ],
)
def test_cells_that_a_table_of_opendocument_compares_stay(tmp_path: Path, attribute: str) -> None:
    sample = SAMPLES["ods"][0]
    table = (
        members(sample)["content.xml"]
        .decode()
        .replace('office:value-type="float"', f'{attribute} office:value-type="float"')
    )
    content = with_members(sample, {"content.xml": table})
    assert segments(tmp_path, "ods", content) == []
    assert members(translated(tmp_path, "ods", content)) == members(content)


def test_what_a_formula_gives_is_worked_out_again(tmp_path: Path) -> None:
    table = members(SAMPLES["ods"][0])["content.xml"].decode()
    given = 'table:formula="of:=[.A9]" office:string-value="Abend" office:value-type="string"'
    table = table.replace('office:value-type="float"', given).replace(">12<", ">Abend<")
    content = with_members(SAMPLES["ods"][0], {"content.xml": table})
    assert "Abend" in table and [one.text for one in segments(tmp_path, "ods", content)] == ["guten morgen"]


@pytest.mark.parametrize(
    ("formula", "text", "found"),
    [
        ('A1="a ""b"""', 'A "b"', True),
        ('COUNTIF(A:A,">=wort")', "wort", True),
        ('COUNTIF(A:A,"w?rt")', "wert", True),
        ('COUNTIF(A:A,"w?rt")', "wort eins", False),
        ('COUNTIF(A:A,"wort~?")', "wort?", True),
        ('COUNTIF(A:A,"wort~?")', "worte", False),
        ('A1&"*"', "irgendein wort", False),
        ('ISNUMBER(SEARCH("Wort",A2))', "ein wort hier", True),
        ('ISNUMBER(FIND(" ",A2))', "ein wort", False),
        ('SUBSTITUTE(A1,"wort","x")', "worte", True),
        ('IF(LEFT(A1,LEN("wo"))="wo",1)', "wort", True),
        ('IF(LEFT(A1,2)="wo",1)', "so wo", False),
        ('RIGHT([.A1];4)<>"wort"', "ein wort", True),
        ('RIGHT([.A1];4)<>"wort"', "worte", False),
        ('MID(A1;2;4)="wort"', "ein wort hier", True),
        ('contains-text("wort")', "worte", True),
        ('IF(A1="wort",LEFT(A1))', "worte", False),
        ('A1=""', "", False),
        ("A1=B1", "wort", False),
    ],
)
def test_what_a_formula_compares_with(formula: str, text: str, found: bool) -> None:
    assert (text in ComparedTexts(literals_of(formula))) == found
