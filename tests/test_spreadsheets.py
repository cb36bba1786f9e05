"""Spreadsheets are read as tables of text; files that were made to do harm are refused."""

import re
import sys
import zipfile
from datetime import date, datetime
from pathlib import Path

import pytest

from supertopic.corpus import spreadsheets
from supertopic.corpus.spreadsheets import as_text, column_number, split_sheet
from supertopic.corpus.tables import read_table

pytestmark = pytest.mark.usefixtures("short_fits")

openpyxl = pytest.importorskip("openpyxl")
SHEET = "xl/worksheets/sheet1.xml"
ODS = """<?xml version="1.0" encoding="UTF-8"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet>
 <table:table table:name="S">{}</table:table></office:spreadsheet></office:body></office:document-content>"""


@pytest.fixture
def book(tmp_path):
    """A workbook of two sheets."""
    book, path = openpyxl.Workbook(), tmp_path / "d.xlsx"
    sheet = book.active
    sheet.title = "First"
    sheet.append(["text", "label", "n", "when", "ok", None])
    sheet.append(["hello", "a", 1, date(2020, 1, 2), True])
    sheet.append([None, "b", 2.5, datetime(2020, 1, 2, 3, 4), False])
    sheet.append([" café ", None, 12345678901, None, None])
    book.create_sheet("Second").append(["q"])
    book["Second"].append([5])
    book.save(path)
    return path


def cells_of_ods(*texts, repeat=""):
    cell = '<table:table-cell office:value-type="string"{}><text:p>{}</text:p></table:table-cell>'
    return "".join(cell.format(repeat, text) for text in texts)


def write_ods(path, rows):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
        file.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{manifest}"/>')
        file.writestr("content.xml", ODS.format(rows))
    return path


def patched(path, change, name=SHEET):
    """The same file with one of its parts changed."""
    place = path.with_name("patched.xlsx")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, change(old.read(part)) if part == name else old.read(part))
    return place


def test_cells_are_text_as_in_csv(book):
    with pytest.warns(UserWarning, match=r"has 2 sheets; 'First' is read\. '.*d\.xlsx::NAME' reads another one: 'Sec"):
        found = read_table(book).to_pydict()
    assert found == {
        "text": ["hello", None, " café "], "label": ["a", "b", None], "n": ["1", "2.5", "12345678901"],
        "when": ["2020-01-02", "2020-01-02 03:04:00", None], "ok": ["true", "false", None],
    }  # fmt: skip
    assert read_table(Path(f"{book}::Second")).to_pydict() == {"q": ["5"]}
    with pytest.raises(ValueError, match=r"no sheet 'Third'; its sheets are 'First', 'Second'"):
        read_table(Path(f"{book}::Third"))
    with pytest.raises(FileNotFoundError):
        read_table(Path(f"{book.with_name('e.xlsx')}::First"))


def test_empty_rows_in_the_middle_count_and_those_at_the_end_do_not(tmp_path):
    rows = [f"<table:table-row>{cells_of_ods(*pair)}</table:table-row>" for pair in (("text", "y"), ("a", "1"))]
    empty = '<table:table-row table:number-rows-repeated="{}"><table:table-cell table:number-columns-repeated="16384"/>'
    rows.insert(1, empty.format(2) + "</table:table-row>")
    rows.append(empty.format(1048572) + "</table:table-row>")
    found = read_table(write_ods(tmp_path / "d.ods", "".join(rows)))
    assert found.to_pydict() == {"text": [None, None, "a"], "y": [None, None, "1"]}
    with pytest.raises(ValueError, match=r"The sheet 'S' of .* is empty"):
        read_table(write_ods(tmp_path / "e.ods", ""))


@pytest.mark.parametrize(
    ("cell", "text"),
    [(1.0, "1"), (1e300, "1e+300"), (0.1, "0.1"), (float("inf"), "inf"), (True, "true"), ("x", "x"), (-3.0, "-3"),
     (datetime(2024, 1, 2), "2024-01-02")],
)  # fmt: skip
def test_one_cell(cell, text):
    assert as_text(cell) == text


def test_names():
    assert [column_number(name) for name in ("A", "Z", "AA", "XFD")] == [1, 26, 27, 16384]
    assert split_sheet(Path("a.xlsx::b c")) == (Path("a.xlsx"), "b c")
    assert split_sheet(Path("a.csv::b")) == (Path("a.csv::b"), None)


def test_the_error_says_what_to_install(book, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ImportError, match=r"pip install 'supertopic\[excel\]'"):
        read_table(book)


@pytest.mark.parametrize("data", [b"no", b"PK\x03\x04junk", b"PK\x05\x06" + bytes(18), b"\xd0\xcf\x11\xe0" * 200])
def test_what_is_no_spreadsheet(tmp_path, data):
    for suffix in ("xlsx", "ods"):
        path = tmp_path / f"d.{suffix}"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"Cannot read .*d\."):
            read_table(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:300],
        lambda data: b'<!DOCTYPE a [<!ENTITY x "y">]>' + data,
        lambda data: data.replace(b'r="A2"', b'r="2A"'),
        lambda data: data.replace(b'<row r="2"', b'<row r="-2"'),
        lambda data: data.replace(b"</sheetData>", b""),
    ],
)
def test_broken_sheets(book, change):
    with pytest.raises(ValueError, match="not a valid spreadsheet"):
        read_table(patched(book, change))


def test_a_cell_far_away_is_not_read(book, tmp_path):
    """The reader would make an array of 17 billion cells, and end the interpreter."""
    for place in (b'r="XFD1048576"', b'r="A20000000"', b'r="XFDX2"'):
        with pytest.raises(ValueError, match=r"a cell in row .*Is it a table\?"):
            read_table(patched(book, lambda data, place=place: data.replace(b'r="A4"', place)))
    far = b'<row r="1000000"><c><v>1</v></c>' + b"<c><v>1</v></c>" * 10 + b"</row></sheetData>"
    with pytest.raises(ValueError, match="row 1,000,000 and one in column 11"):
        read_table(patched(book, lambda data: data.replace(b"</sheetData>", far)))
    styled = patched(book, lambda data: data.replace(b"</row>", b'<c r="XFC3" s="1"/></row>', 1))
    with pytest.warns(UserWarning, match="2 sheets"):
        assert read_table(styled).num_rows == 3  # a cell that has only a colour
    for repeat in ("columns", "rows"):
        cells = cells_of_ods("text", repeat=f' table:number-{repeat}-repeated="900000000"')
        rows = f"<table:table-row>{cells}</table:table-row>"
        if repeat == "rows":
            rows = rows.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="900000000">')
        with pytest.raises(ValueError, match=r"Is it a table\?"):
            read_table(write_ods(tmp_path / "d.ods", rows))


def test_a_dimension_that_lies_takes_no_memory(book):
    lies = patched(book, lambda data: re.sub(b"<dimension[^>]*>", b'<dimension ref="A1:XFD1048576"/>', data))
    with pytest.warns(UserWarning, match="2 sheets"):
        assert read_table(lies).num_rows == 3


def test_bombs(book, monkeypatch):
    monkeypatch.setattr(spreadsheets, "MOST_BYTES", 20_000)
    bomb = patched(book, lambda data: data + b" " * 10**6)
    with pytest.raises(ValueError, match=r"would be unpacked to 1,0.* bytes in .* at most 20,000 bytes"):
        read_table(bomb)
    data = bytearray(bomb.read_bytes())  # one that says that it is small
    size = (10**6 + len(zipfile.ZipFile(book).read(SHEET))).to_bytes(4, "little")
    assert data.count(size) == 2
    bomb.write_bytes(bytes(data).replace(size, (100).to_bytes(4, "little")))
    with pytest.raises(ValueError, match="not a valid spreadsheet"):
        read_table(bomb)
    monkeypatch.undo()
    monkeypatch.setattr(spreadsheets, "MOST_PARTS", 3)
    with pytest.raises(ValueError, match=r"at most .* in 3 parts"):
        read_table(book)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name(book):
    with zipfile.ZipFile(book, "a") as file:
        file.writestr(SHEET, "<worksheet/>")
    with pytest.raises(ValueError, match="two of its parts have the same name"):
        read_table(book)
