"""`rankad find`: the anomalies of one table, without normal rows to learn from."""

import io
import json

import numpy as np
import polars as pl
import pytest

import rankad
from cli_cases import call, cells, read_text
from rankad.cli import example
from rankad.modelfile import read_card
from rankad.tables import Untyped

pytestmark = [
    pytest.mark.usefixtures("few_folds"),
    pytest.mark.filterwarnings("ignore:Calibrated by a split"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Readings of a pump, of which nobody knows which are normal."""
    path = tmp_path_factory.mktemp("find") / "log.csv"
    example.write_table(path, example.make_example(90, 10, seed=3).normal)
    rows = read_text(path)
    odd = {"vibration_mms": "60", "bearing_c": "300"}
    cells = {name: rows[name].to_list() for name in odd}
    for name, cell in odd.items():
        cells[name][40] = cell
    rows.with_columns(pl.Series(name, column) for name, column in cells.items()).write_csv(path)
    return path


def test_every_row_gets_its_place_and_the_odd_one_is_among_the_first(table, tmp_path, capsys):
    out = tmp_path / "found.csv"
    said = call(capsys, "find", table, "--id=reading", "--alpha=0.1", f"--out={out}")
    assert said.status == 0
    before, after = cells(table), cells(out)
    assert after[0] == [*before[0], "p_value", "alarm"]
    assert [row[:-2] for row in after[1:]] == before[1:], "rows come out as they came in"
    p_values = np.array([float(row[-2]) for row in after[1:]])
    alarms = [row[-1] == "true" for row in after[1:]]
    n = len(p_values)
    np.testing.assert_allclose(np.sort(p_values), np.arange(1, n + 1) / n)
    assert p_values[40] <= 2 / n
    assert alarms == (p_values <= 0.1).tolist()
    assert sum(alarms) == n // 10
    assert f"{n} rows, {n // 10} alarms at 10%" in said.out
    assert f"the row's place among the {n} rows of this table" in " ".join(said.out.split())
    shown = [line for line in said.out.splitlines() if line.split()[:1] == ["41"]]
    assert "vibration_mms 60, usually" in shown[0] or "bearing_c 300, usually" in shown[0]


def test_it_is_what_the_detector_says(table, tmp_path, capsys):
    call(capsys, "find", table, "--id=reading", "--seed=5", "--quiet", f"--out={tmp_path / 'found.csv'}")
    detector = rankad.TableDetector(rankad.RankAD(trim="auto", random_state=5), ids=["reading"])
    expected = detector.fit_p_values(Untyped(read_text(table)))
    np.testing.assert_array_equal(pl.read_csv(tmp_path / "found.csv")["p_value"], expected)


def test_nothing_is_written_unless_asked_for(table, capsys):
    there = set(table.parent.iterdir())
    said = call(capsys, "find", table, "--id=reading", "--top=2")
    assert said.status == 0
    assert set(table.parent.iterdir()) == there
    assert f"All rows: rankad find {table} --out found.csv" in said.out
    assert call(capsys, "find", table, "--id=reading", "--quiet").out == ""


def test_rows_to_standard_output_and_words_beside_it(table, capsys):
    said = call(capsys, "find", table, "--id=reading", "--out=-", "--reasons")
    found = pl.read_csv(io.StringIO(said.out))
    assert found.columns[-3:] == ["p_value", "alarm", "reason"]
    assert found["reason"].is_not_null().to_list() == found["alarm"].to_list()
    assert "vibration_mms 60" in found["reason"][40] or "bearing_c 300" in found["reason"][40]
    assert "The most suspicious rows" in said.err


def test_reasons_in_full(table, capsys):
    said = call(capsys, "find", table, "--id=reading", "--top=2", "--explain")
    assert "Row 41 (" in said.out
    assert "if usual" in said.out


def test_the_answer_as_json(table, capsys):
    said = call(capsys, "find", table, "--id=reading", "--top=3", "--json")
    told = json.loads(said.out)
    assert (told["rows"], told["alarms"], told["alpha"]) == (90, 4, 0.05)
    assert told["kept_from_training"] == 18
    assert 41 in [each["row"] for each in told["most_suspicious"]]
    assert len(told["most_suspicious"]) == 3
    assert "place among the 90 rows" in told["promise"]


def test_a_model_for_new_rows_can_be_kept(table, tmp_path, capsys):
    model = tmp_path / "pump.rankad"
    said = call(capsys, "find", table, "--id=reading", f"--model={model}")
    assert f"Saved {model}." in said.out
    card = read_card(model)
    assert (card.parameters["trim"], card.parameters["n_jobs"], card.n_trimmed) == ("auto", None, 18)
    assert call(capsys, "score", table, f"--model={model}", "--quiet").status == 0
    assert "18 of them kept from training as suspects" in call(capsys, "inspect", model).out


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("found.parquet", lambda path: pl.read_parquet(path)["flow_m3h"].dtype == pl.Float64),
        ("found.jsonl", lambda path: pl.read_ndjson(path)["flow_m3h"].dtype == pl.Float64),
        ("found.tsv", lambda path: "\tp_value\talarm" in path.read_text()),
    ],
)
def test_other_formats(table, tmp_path, capsys, name, check):
    assert call(capsys, "find", table, "--id=reading", "--quiet", f"--out={tmp_path / name}").status == 0
    assert check(tmp_path / name)


def test_what_was_separated_by_semicolons_stays_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    text = "\n".join(f"{a:.2f};{b:.2f}".replace(".", ",") for a, b in rng.normal(size=(40, 2)))
    (tmp_path / "t.csv").write_text(f"a;b\n{text}\n")
    call(capsys, "find", tmp_path / "t.csv", "--quiet", f"--out={tmp_path / 'found.csv'}")
    assert cells(tmp_path / "found.csv", ";")[0] == ["a", "b", "p_value", "alarm"]


def test_outputs_are_never_written_over_inputs(table, tmp_path, capsys):
    before = table.read_bytes()
    for option in ("--out", "--model"):
        said = call(capsys, "find", table, f"{option}={table}")
        assert said.status == 2
        assert option in said.err
        assert "also read from" in said.err
    same = tmp_path / "same.csv"
    said = call(capsys, "find", table, f"--out={same}", f"--model={same}")
    assert said.status == 2
    assert "also written to" in said.err
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "status", "what"),
    [
        (["--alpha", "0"], 2, "strictly between 0 and 1"),
        (["--top", "0"], 2, "--top"),
        (["--json", "--out", "-"], 2, "cannot take both rows and JSON"),
        (["--drop", "nowhere"], 1, "nowhere"),
    ],
)
def test_misuse_is_told(table, capsys, options, status, what):
    said = call(capsys, "find", table, *options)
    assert said.status == status
    assert what in said.err


def test_columns_that_are_there_already_are_not_taken(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"score": rng.normal(size=40), "alarm": rng.normal(size=40)})
    rows.write_csv(tmp_path / "t.csv")
    said = call(capsys, "find", tmp_path / "t.csv")
    assert said.status == 1
    assert "has a column 'alarm' already" in said.err
    out = tmp_path / "found.csv"
    assert call(capsys, "find", tmp_path / "t.csv", "--prefix=my_", "--quiet", f"--out={out}").status == 0
    assert cells(out)[0] == ["score", "alarm", "my_p_value", "my_alarm"]


def test_it_is_among_the_commands(capsys):
    assert "find" in call(capsys, "--help").out
    assert "--alpha" in call(capsys, "find", "--help").out


def test_fit_takes_an_automatic_share_too(table, tmp_path, capsys):
    model = tmp_path / "m.rankad"
    assert call(capsys, "fit", table, f"--model={model}", "--id=reading", "--trim=auto").status == 0
    assert read_card(model).parameters["trim"] == "auto"
    said = call(capsys, "fit", table, f"--model={model}", "--trim=most")
    assert said.status == 2
    assert "'most' is neither auto nor a share from 0 to below 0.5" in said.err
