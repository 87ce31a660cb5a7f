"""Tables on disk are written whole or not at all, and tables by hand are read as they were meant."""

import pytest

from medssl.core.csv_files import read_cells, read_rows, write_rows
from medssl.core.errors import DataError


def test_rows_come_back_as_text_with_numbers_of_six_decimals(tmp_path):
    write_rows(tmp_path / "table.csv", ("case", "dice"), [{"case": "a, b", "dice": 0.5}])
    assert (tmp_path / "table.csv").read_bytes() == b'case,dice\r\n"a, b",0.500000\r\n'
    [(row, where)] = read_rows(tmp_path / "table.csv", ("dice",), "Mend it.")
    assert row == {"case": "a, b", "dice": "0.500000"} and where.endswith("table.csv, line 2")


def test_a_missing_column_is_named_with_the_way_out(tmp_path):
    (tmp_path / "table.csv").write_text("case\na\n")
    with pytest.raises(DataError, match=r"line 1: column dice missing.* Mend it\."):
        list(read_rows(tmp_path / "table.csv", ("dice",), "Mend it."))


def test_a_table_that_cannot_be_written_leaves_the_one_before(tmp_path):
    write_rows(tmp_path / "table.csv", ("case",), [{"case": "a"}])
    with pytest.raises(ValueError, match="unknown"):
        write_rows(tmp_path / "table.csv", ("case",), [{"case": "b"}, {"unknown": 1}])
    assert (tmp_path / "table.csv").read_text().split() == ["case", "a"]


def test_tables_of_spreadsheets_lose_their_mark_blanks_and_empty_lines(tmp_path):
    (tmp_path / "table.csv").write_text("case, patient\n\na ,p1\nlonely\n", encoding="utf-8-sig")
    assert read_cells(tmp_path / "table.csv") == [["case", "patient"], ["a", "p1"], ["lonely"]]
