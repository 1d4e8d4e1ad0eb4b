"""Excel workbooks to rows."""

import datetime
import gzip
import io
import re
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
import xlsxwriter

from cli_cases import call
from malformed_cases import mutated
from rankad import KLPE, TableDetector
from rankad.io import excel
from rankad.io.table_files import TableError, open_table


def workbook(path, sheets, hidden=()):
    """Write sheets, each a list of rows from cell A1 on; a callable writes one itself."""
    book = xlsxwriter.Workbook(str(path), {"nan_inf_to_errors": True})
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for at, row in enumerate(rows):
            for place, cell in enumerate(row):
                if isinstance(cell, datetime.datetime):
                    sheet.write_datetime(at, place, cell, moment)
                elif isinstance(cell, datetime.date):
                    sheet.write_datetime(at, place, datetime.datetime(cell.year, cell.month, cell.day), day)
                elif cell == "#DIV/0!":
                    sheet.write_formula(at, place, "=1/0", None, cell)
                elif isinstance(cell, str):
                    sheet.write_string(at, place, cell)
                elif cell is not None:
                    sheet.write(at, place, cell)
    book.close()
    return path


def read(path, **options):
    with open_table(path, **options) as table:
        frames = list(table)
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(table.columns, pl.String))


def complaint(path):
    """Return what reading says of a file, nothing if it can be read."""
    try:
        read(path)
    except TableError as error:
        return str(error)
    return ""


WHEN = datetime.datetime(2026, 3, 1, 10, 30)
ROWS = [
    ["n", "x", "text", "zip", "day", "at", "ok", "mixed", "holes", 2026],
    [1, 1.5, "é", "01067", WHEN.date(), WHEN, True, 5, None, 1],
    [2, -2.0, "a,b", "04103", WHEN.date(), WHEN, False, "five", "#DIV/0!", 2],
    [],
    [3, 1e9, "c", "99999", WHEN.date(), WHEN, True, 5.5, 7.5, 3],
]


def test_cells_come_as_what_they_are(tmp_path):
    frame = read(workbook(tmp_path / "t.xlsx", {"Data": ROWS}))
    assert frame.columns == ["n", "x", "text", "zip", "day", "at", "ok", "mixed", "holes", "2026"]
    assert frame["n"].to_list() == [1, 2, 3]
    assert frame["n"].dtype == pl.Int64
    assert frame["x"].to_list() == [1.5, -2.0, 1e9]
    assert frame["zip"].to_list() == ["01067", "04103", "99999"]
    assert frame["at"].to_list() == [WHEN] * 3
    assert frame["ok"].to_list() == [True, False, True]
    assert frame["mixed"].to_list() == ["5", "five", "5.5"]
    assert frame["holes"].to_list() == [None, None, 7.5]


def test_a_word_in_the_last_row_is_not_lost(tmp_path):
    rows = [["a"], *([i] for i in range(3000)), ["oops"]]
    frame = read(workbook(tmp_path / "t.xlsx", {"Data": rows}))
    assert frame["a"][-1] == "oops"
    assert frame["a"].null_count() == 0


def test_rows_and_columns_before_the_table_may_be_empty(tmp_path):
    rows = [[], [], [None, None, "a", "b"], [None, None, 1, 2], [None, None, 3, 4]]
    assert read(workbook(tmp_path / "t.xlsx", {"Data": rows})).rows() == [(1, 2), (3, 4)]


def test_the_only_sheet_that_is_not_empty_is_taken(tmp_path):
    path = workbook(tmp_path / "t.xlsx", {"Sheet1": [], "Here": [["a"], [1]], "Sheet3": []})
    assert read(path).rows() == [(1,)]
    path = workbook(tmp_path / "t.xlsx", {"May": [["a"], [1]], "It's June": [["a"], [2]]})
    with pytest.raises(
        TableError, match=r"has 2 sheets that are not empty, 'May', \"It's June\"; .*--sheet 'May'"
    ):
        read(path)
    assert read(path, sheet="It's June").rows() == [(2,)]
    with pytest.raises(TableError, match=r"has no sheet 'July'; it has 'May', "):
        read(path, sheet="July")


@pytest.mark.parametrize(
    ("sheets", "said"),
    [
        ({"S": []}, "sheet 'S' is empty; a table begins with a row of column names"),
        ({"S": [], "T": []}, "t.xlsx are empty"),
        (
            {"S": [["Report of May"], [], ["a", "b"], [1, 2]]},
            "sheet 'S': column 2 has no name in the first row",
        ),
        ({"S": [["a", "b", None], [1, 2, 3]]}, "column 3 has no name"),
        ({"S": [["a", " "], [1, 2]]}, "column 2 has no name"),
        ({"S": [["a", "b", "a"], [1, 2, 3]]}, "sheet 'S': two columns are called 'a'. Rename one"),
    ],
)
def test_sheets_that_are_no_tables_are_errors_that_name_the_place(tmp_path, sheets, said):
    path = workbook(tmp_path / "t.xlsx", sheets)
    with pytest.raises(TableError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_alone_are_a_table_without_rows(tmp_path):
    with open_table(workbook(tmp_path / "t.xlsx", {"S": [["a", "b"]]})) as table:
        assert table.columns == ["a", "b"]
        assert list(table) == []


def test_batches_and_positions(tmp_path):
    path = workbook(tmp_path / "t.xlsx", {"S": [["a", "b"], *([i, "x"] for i in range(500))]})
    with open_table(path, batch_bytes=1000) as table:
        assert (table.total, table.unit) == (500, "rows")
        first = next(table)
        assert 0 < first.height < 500
        position = table.position
    with open_table(path, batch_bytes=1000, start=position) as table:
        assert pl.concat([first, *table])["a"].to_list() == list(range(500))


def test_damaged_files_are_errors_in_one_line(tmp_path):
    whole = workbook(tmp_path / "t.xlsx", {"S": ROWS}).read_bytes()
    bad = tmp_path / "bad.xlsx"
    rng = np.random.default_rng(4)
    for turn in range(60):
        data = bytearray(whole)
        if turn % 3 == 0:
            data = data[: int(rng.integers(0, len(data)))]
        elif turn % 3 == 1:
            for at in rng.integers(0, len(data), 5):
                data[at] ^= 1 << int(rng.integers(8))
        else:
            data = bytearray(rng.bytes(int(rng.integers(1, 400))))
        bad.write_bytes(data)
        said = complaint(bad)
        assert not said or (str(bad) in said and "\n" not in said)
    bad.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(
        TableError, match=r"cannot be read as an Excel workbook \(\.xlsx\): it is something else"
    ):
        read(bad)
    bad.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(
        TableError, match=r"old format \(\.xls\), or locked by a password\. Save it as \.xlsx"
    ):
        read(bad)
    np.savez(tmp_path / "t", X=np.zeros((3, 2)))
    with pytest.raises(TableError, match="it is another kind of archive"):
        read(tmp_path / "t.npz", format="excel")
    bad.write_bytes(b"")
    with pytest.raises(TableError, match=r"bad\.xlsx is empty"):
        read(bad)


def test_a_workbook_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    path = workbook(tmp_path / "t.xlsx", {"S": [["a"], *([1] for _ in range(5000))]})
    monkeypatch.setattr(excel, "_MOST_BYTES", 100_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(TableError, match=r"a workbook is read as a whole\. Save the sheet as CSV"):
        read(path)


def test_sheets_with_damaged_parts_are_read_or_are_errors(tmp_path):
    """Parts are changed and packed again, with right checksums."""
    path, bad = workbook(tmp_path / "t.xlsx", {"Data": ROWS}), tmp_path / "bad.xlsx"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    rng, names, refused = np.random.default_rng(1), [name for name in parts if name.startswith("xl/")], 0
    for _ in range(120):
        name = names[int(rng.integers(len(names)))]
        packed(bad, parts | {name: bytes(mutated(parts[name], rng))})
        said = complaint(bad)
        assert not said or (str(bad) in said and "\n" not in said)
        refused += bool(said)
    assert 20 < refused < 110


def packed(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def repacked(path, old, new, part="xl/worksheets/sheet1.xml"):
    """Write the workbook with a change in one part to another file, and return that."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts[part]
    bad = path.with_name("bad.xlsx")
    packed(bad, parts | {part: parts[part].replace(old, new)})
    return bad


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            b'<row r="1000000"><c r="BH1000000"><v>1</v></c></row>',
            "to row 1,000,000 and column 60;",
        ),
        (b"<row r=\"9\"><c x=\" r='A1' >\" r='XFD9000'/></row>", "to row 9,000 and column 16,384;"),
        (b'<x:row r="9000"><x:c r="XFD9000"/></x:row>', "to row 9,000 and column 16,384;"),
        (b'<row r="9000">' + b"<c/>" * 9_000 + b'<x r="A1"/>' * 9_000 + b"</row>", "9,000 and column 9,000"),
        (b'<row r="9"><c r="ZZZZZZZZ9"><v>1</v></c></row>', "'ZZZZZZZZ9' is not a cell or row reference"),
        (b'<row r="9"><c r="A99999999999"/></row>', "'99999999999' is not a cell or row reference"),
        (b'<row r="99999999999"><c r="A9"/></row>', "'99999999999' is not a cell or row reference"),
    ],
)
def test_few_bytes_cannot_stand_for_many_cells(tmp_path, rows, said):
    path = workbook(tmp_path / "t.xlsx", {"S": [["a"], [1], [2]]})
    bad = repacked(path, b"</sheetData>", rows + b"</sheetData>")
    with pytest.raises(TableError) as caught:
        read(bad)
    assert said in str(caught.value)
    assert str(bad) in str(caught.value)


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"])
def test_few_bytes_cannot_stand_for_many(tmp_path, part):
    path = workbook(tmp_path / "t.xlsx", {"S": [["a"], [1], [2]]})
    end = b"</sheetData>" if "sheet1" in part else b"</sst>"
    bad = repacked(path, end, b" " * (50 << 20) + end, part)
    with pytest.raises(TableError, match=r"or more than 48 MiB and 50 times its size"):
        read(bad)
    good = repacked(path, end, b" " * (1 << 20) + end, part)
    assert read(good)["a"].to_list() == [1, 2]


def test_an_archive_in_gzip_is_not_unpacked_without_limit(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(gzip.compress(b"PK\x03\x04" + bytes(64 << 20), 1))
    with pytest.raises(TableError, match=r"or more than 48 MiB and 50 times its size"):
        read(path)


def test_sheets_of_other_programs_are_read(tmp_path):
    """Prefixes, other quotes and order, cells and rows without references."""
    path = workbook(tmp_path / "t.xlsx", {"S": [["a", "b"], [1, 2], [3, 4]]})
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
    first, rest = sheet.split(b"</row>", 1)
    others = (
        b"<row spans='1:2' r='2'><c s='0' r='A2'><v>1</v></c><c><v>2</v></c></row><row><c><v>3</v></c></row>"
    )
    new = first + b"</row>" + others + rest[rest.index(b"</sheetData>") :]
    found = read(repacked(path, sheet, new))
    assert found.rows() == [(1, 2), (3, None)]


def test_what_the_library_warns_of_is_not_on_the_screen(tmp_path):
    path = workbook(tmp_path / "t.xlsx", {"S": [["a"], [1]]})
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
    bad = repacked(path, sheet, b"<a>" * 9)
    code = "from rankad.cli import main; main()"
    given = [sys.executable, "-c", code, "fit", bad, "--model", tmp_path / "m.rankad"]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "bad.xlsx, sheet 'S' is empty" in done.stderr


@pytest.mark.parametrize("reference", [b'r="XFD1048576"', b"r = 'xfd1048576'"])
def test_a_lone_cell_in_a_far_corner_does_not_fill_the_memory(tmp_path, reference):
    path, bad = workbook(tmp_path / "t.xlsx", {"S": [["a"], [1], [2]]}), tmp_path / "bad.xlsx"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b'r="A3"' in parts[sheet]
    packed(bad, parts | {sheet: parts[sheet].replace(b'r="A3"', reference)})
    with pytest.raises(TableError, match="a sheet reaches to row 1,048,576 and column 16,384;"):
        read(bad)


def test_cells_without_references_are_counted(tmp_path):
    path, bad = workbook(tmp_path / "t.xlsx", {"S": [["a"], [1], [2]]}), tmp_path / "bad.xlsx"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    wide = b'<row r="1">' + b"<c><v>1</v></c>" * 16_000 + b'</row><row r="1048576"><c><v>1</v></c></row>'
    before, _, _ = parts[sheet].partition(b"<row")
    packed(bad, parts | {sheet: before + wide + b"</sheetData></worksheet>"})
    with pytest.raises(TableError, match="a sheet reaches to row 1,048,576 and column 16,000;"):
        read(bad)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    path, other = workbook(tmp_path / "t.xlsx", {"S": [["a"], [1]]}), tmp_path / "lie.xlsx"
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    data = path.read_bytes().replace(size.to_bytes(4, "little"), (size - 50).to_bytes(4, "little"))
    assert data != path.read_bytes()
    other.write_bytes(data)
    with pytest.raises(TableError, match=r"lie\.xlsx cannot be read as an Excel workbook"):
        read(other)


def test_numpy_archives_are_still_told_from_workbooks(tmp_path, monkeypatch):
    np.savez(tmp_path / "t", X=np.zeros((3, 2)))
    nameless = tmp_path / "nameless"
    nameless.write_bytes((tmp_path / "t.npz").read_bytes())
    assert read(nameless).shape == (3, 2)
    nameless.write_bytes(workbook(tmp_path / "t.xlsx", {"S": ROWS}).read_bytes())
    assert read(nameless).height == 3
    stdin = io.BufferedReader(io.BytesIO(nameless.read_bytes()))
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stdin}))
    assert read("-").height == 3


def test_from_a_workbook_to_scores(capsys, tmp_path):
    rng = np.random.default_rng(3)
    rows = [[int(i), float(value), "x"] for i, value in enumerate(rng.normal(size=60))]
    path = workbook(tmp_path / "t.xlsx", {"May": [["id", "a", "b"], *rows], "June": [["a"], [1]]})
    model, out = tmp_path / "m.rankad", tmp_path / "o.csv"
    frame = pl.DataFrame(rows, schema=["id", "a", "b"], orient="row")
    detector = TableDetector(KLPE(0.1), ids=["id"]).fit(frame)
    detector.save(model)
    said = call(capsys, "score", path, "--model", model, "--out", out)
    assert (said.status, "--sheet 'May'" in said.err) == (1, True)
    said = call(capsys, "score", path, "--model", model, "--out", out, "--sheet", "May")
    assert said.status == 0, said.err
    scored = pl.read_csv(out)
    assert scored["id"].to_list() == list(range(60))
    np.testing.assert_array_equal(scored["p_value"], detector.p_values(frame))
    said = call(capsys, "score", path, "--model", model, "--sheet", "May", "--out", tmp_path / "o.xlsx")
    assert said.status == 1
    assert re.search(r"o\.xlsx cannot be written as excel; formats are csv", said.err)


def test_it_says_what_to_install(tmp_path):
    path = workbook(tmp_path / "t.xlsx", {"S": ROWS})
    code = """
import sys
sys.modules["fastexcel"] = None
from rankad.io.table_files import open_table
try:
    open_table(sys.argv[1])
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert "pip install 'rankad[excel]' to read it, or save the sheet as CSV" in done.stdout
