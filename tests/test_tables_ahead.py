"""A table read ahead is the same table."""

import threading
import time

import numpy as np
import polars as pl
import pytest

from rankad.io.errors import TableError
from rankad.io.reader import ReadAhead
from rankad.io.table_files import open_table


@pytest.fixture
def path(tmp_path):
    pl.DataFrame({"a": np.arange(5_000), "b": ["x;y"] * 5_000}).write_csv(tmp_path / "t.csv")
    return str(tmp_path / "t.csv")


def _steps(reader):
    with reader:
        return [(frame, reader.rows, reader.rows_before, reader.done, reader.position) for frame in reader]


def test_batches_and_what_is_said_of_them_are_the_same(path):
    plain, ahead = (
        _steps(make(open_table(path, batch_bytes=4_096))) for make in (lambda reader: reader, ReadAhead)
    )
    assert len(plain) == len(ahead) > 5
    for one, other in zip(plain, ahead, strict=True):
        assert one[0].equals(other[0])
        assert one[1:] == other[1:]


def test_a_position_is_that_of_the_batch_handed_out_not_of_the_one_that_is_read(path):
    with ReadAhead(open_table(path, batch_bytes=4_096)) as reader:
        first = next(reader)
        time.sleep(0.3)
        position = reader.position
    with ReadAhead(open_table(path, batch_bytes=4_096, start=position)) as reader:
        rest = pl.concat([*reader])
    assert pl.concat([first, rest]).equals(pl.concat([*open_table(path)]))


def test_it_knows_what_the_reader_knows(path):
    with open_table(path) as plain, ReadAhead(open_table(path)) as ahead:
        for name in ("name", "format", "columns", "total", "unit", "rows", "delimiter"):
            assert getattr(ahead, name) == getattr(plain, name)


def test_errors_come_when_their_batch_does(tmp_path):
    rows = [f"{at},1" for at in range(3_000)]
    rows[2_500] = "1,2,3"
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows, ""]))
    with ReadAhead(open_table(str(tmp_path / "t.csv"), batch_bytes=4_096)) as reader:
        seen = []
        with pytest.raises(TableError, match="2502"):
            seen.extend(frame.height for frame in reader)
    assert 1_000 < sum(seen) <= 2_500


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_closing_early_leaves_no_thread_behind(path, batches):
    before = threading.active_count()
    reader = ReadAhead(open_table(path, batch_bytes=4_096))
    for _ in range(batches):
        next(reader)
    reader.close()
    assert threading.active_count() == before
    assert list(reader) == []
