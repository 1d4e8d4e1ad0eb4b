"""Outputs take nobody's place: neither when they are started nor when they are finished."""

import os

import pytest

from cli_cases import call, make_files
from rankad import TableDetector
from rankad._base.files import AtomicFile
from rankad.io.table_files import TableError, open_output


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("files"))


def test_what_became_an_input_meanwhile_is_not_replaced(tmp_path):
    table, target = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text("the only copy")
    unfinished = AtomicFile(target, [table])
    unfinished.file.write(b"rows")
    os.link(table, target)
    with pytest.raises(FileExistsError, match=r"out\.csv is also read from"):
        unfinished.finish()
    unfinished.discard()
    assert table.read_text() == "the only copy"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "t.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_what_became_a_pipe_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "out.csv"
    unfinished = AtomicFile(target)
    os.mkfifo(target)
    with pytest.raises(FileExistsError, match="is a device or a pipe"):
        unfinished.finish()
    unfinished.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert target.is_fifo()


@pytest.mark.parametrize("command", ["fit", "calibrate"])
def test_a_model_does_not_replace_the_table_that_came_in_its_place(
    files, tmp_path, capsys, monkeypatch, command
):
    table, out = tmp_path / "t.csv", tmp_path / "out.rankad"
    table.write_bytes(files.new.read_bytes())
    before = table.read_bytes()
    step = {"fit": "_fit_learned", "calibrate": "calibrate"}[command]
    work = getattr(TableDetector, step)

    def link_and_work(self, *given):
        # Somebody links the table to where the model will go, while there is work to do.
        os.link(table, out)
        return work(self, *given)

    monkeypatch.setattr(TableDetector, step, link_and_work)
    given = ["--model", out] if command == "fit" else ["--model", files.model, "--out", out]
    said = call(capsys, command, table, *given, "--quiet")
    assert said.status != 0
    assert "also read from" in said.err
    assert os.path.samefile(table, out)
    assert table.read_bytes() == before


def test_a_scored_table_does_not_replace_its_input_that_came_in_its_place(tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text("a\n1\n")
    with pytest.raises(FileExistsError, match="also read from"), open_output(out, inputs=[table]):
        os.link(table, out)
    assert table.read_text() == "a\n1\n"


def test_a_part_that_no_run_left_is_not_cut_off(tmp_path):
    part, out = tmp_path / "out.csv.part", tmp_path / "out.csv"
    part.write_text("half of a download")
    with pytest.raises(TableError, match=r"out\.csv\.part exists already, without a journal"):
        open_output(out, resume=True, fingerprint={})
    assert part.read_text() == "half of a download"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv.part"]


def test_a_run_that_was_killed_before_its_first_row_starts_over(tmp_path):
    out = tmp_path / "out.csv"
    killed = open_output(out, resume=True, fingerprint={"alpha": 0.1})
    # Without a word to the writer, as a killed run would leave it; rows may be on the disk already.
    killed._destination.file.write(b"a,b\n1,")
    killed._destination.file.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv.part", "out.csv.part.json"]
    again = open_output(out, resume=True, fingerprint={"alpha": 0.2})
    assert again.position is None
    again.discard()
    assert list(tmp_path.iterdir()) == []
