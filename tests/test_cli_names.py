"""Names and values of the user's table on the screen and in the report: as they are, and harmless."""

import numpy as np
import polars as pl
import pytest

from cli_cases import QUICK, call
from rankad import RankAD, TableDetector
from rankad.cli.explain import _apart
from rankad.cli.words import oddity
from rankad.tables import Strange

# Words that rankad has words of its own for, separators of its own sentences, and signs that it rewrites.
POWER, COLON, MINUS = "nominal_power", "mode: nominal", "a\N{MINUS SIGN}b"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)

    def table(n):
        return pl.DataFrame(
            {
                "nominal: id": [f"nominal {at}" for at in range(n)],
                POWER: rng.normal(size=n),
                COLON: rng.choice([MINUS, "nominal"], size=n),
                "dropped: nominal": "x",
            }
        )

    detector = TableDetector(RankAD(0.05, **QUICK), ids=["nominal: id"], drop=["dropped: nominal"])
    detector.fit(table(200)).save(folder / "m.rankad")
    new = table(10)
    new[3, COLON], new[4, POWER] = "nominal_new", 99.0
    new.write_csv(folder / "new.csv")
    return folder


def test_what_is_strange_is_said_with_the_names_of_the_table():
    odd = Strange(0, POWER, "not among the categories of nominal rows", "nominal")
    assert oddity(odd) == "nominal_power nominal: not among the categories of normal rows"


def test_no_command_rewrites_names_or_values(files, capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "300")
        said = call(capsys, "explain", files / "new.csv", "--model", files / "m.rankad", "--top", 2)
        assert "mode: nominal nominal_new: not among the categories of normal rows." in said.out
        assert "(nominal 3)" in said.out
        assert "nominal_power" in said.out
        assert "normal_" not in said.out
        said = call(capsys, "inspect", files / "m.rankad")
        table = [line.split("  ") for line in said.out.splitlines()]
        firsts = [next((part.strip() for part in line if part.strip()), "") for line in table]
        assert {POWER, COLON, "nominal: id", "dropped: nominal"} <= set(firsts)


def test_a_change_keeps_the_signs_of_categories():
    assert _apart(MINUS, "c") == (MINUS, "c")
    assert _apart(-1.25, 2) == ("-1.25", "2")


def test_errors_keep_the_blanks_of_names(files, capsys, tmp_path):
    pl.DataFrame({"two  blanks": [1], "p_value": [1]}).write_csv(tmp_path / "t.csv")
    said = call(capsys, "fit", tmp_path / "t.csv", "--model", tmp_path / "m", "--id", "three   blanks")
    assert said.status != 0
    assert "three   blanks" in said.err
    assert "two  blanks" in said.err
    assert said.err.count("\n") == 1
