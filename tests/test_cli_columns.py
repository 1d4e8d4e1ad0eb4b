"""The command on tables as people have them: the ones that were once misread without a word."""

import datetime
import json

import numpy as np
import polars as pl
import pytest

import rankad
from cli_cases import QUICK, call
from rankad import RankAD


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Fit without selection."""
    monkeypatch.setattr(rankad, "RankAD", lambda alpha, **given: RankAD(alpha, **{**QUICK, **given}))


def comma(values, digits=2):
    return [f"{value:.{digits}f}".replace(".", ",") for value in values]


def sensor_log(n, seed, points=False):
    rng = np.random.default_rng(seed)
    cells = {"temp": rng.normal(70, 2, size=n), "vibration": np.minimum(rng.gamma(20, 0.08, size=n), 2.9)}
    load = [f"{value:.1f}%" for value in 100 * rng.beta(5, 3, size=n)]
    text = {name: [f"{v:.2f}" for v in values] if points else comma(values) for name, values in cells.items()}
    return pl.DataFrame(text | {"load": load, "flow": [f"{v:.1f} l/min" for v in rng.normal(30, 3, size=n)]})


def put(frame, path, **options):
    frame.write_csv(path, **options)
    return path


def fit(capsys, table, model, *options):
    said = call(capsys, "fit", table, "--model", model, *options)
    assert said.status == 0, said.err
    return said


def p_values(capsys, table, model, tmp_path):
    said = call(capsys, "score", table, "--model", model, "--out", tmp_path / "scored.parquet")
    assert said.status == 0, said.err
    return pl.read_parquet(tmp_path / "scored.parquet")["p_value"].to_numpy()


def test_decimal_commas_are_numbers_and_a_planted_vibration_is_found(capsys, tmp_path):
    model = tmp_path / "m.rankad"
    said = fit(capsys, put(sensor_log(800, 0), tmp_path / "n.csv", separator=";"), model)
    assert said.err == ""
    assert [column.kind for column in rankad.load(model).encoder_.columns] == ["number"] * 4
    new = sensor_log(300, 1)
    new = new.with_columns(vibration=pl.Series(["9,00", *new["vibration"][1:]]))
    p = p_values(capsys, put(new, tmp_path / "x.csv", separator=";"), model, tmp_path)
    assert p[0] == p.min() < 0.01
    # As many alarms as with points.
    points = tmp_path / "points.rankad"
    fit(capsys, put(sensor_log(800, 0, points=True), tmp_path / "n.csv"), points)
    same = sensor_log(300, 1, points=True)
    with_points = same.with_columns(vibration=pl.Series(["9.00", *same["vibration"][1:]]))
    np.testing.assert_array_equal(p_values(capsys, put(with_points, tmp_path / "x.csv"), points, tmp_path), p)


def transactions(n, first, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "tx_id": range(first, first + n),
            "epoch": [1_700_000_000 + 600 * at for at in range(first, first + n)],
            "amount": np.exp(rng.normal(3, 1, size=n)),
            "zip": rng.choice(["01067", "80331", "10115"], size=n),
            "status": rng.choice([200, 301, 404], p=[0.8, 0.1, 0.1], size=n),
            "merchant": [f"m{at}" for at in rng.integers(4_000, size=n)],
        }
    )


def test_ids_epochs_zips_codes_and_names_are_told_and_new_rows_are_no_alarms(capsys, tmp_path):
    transactions(1_000, 1, 0).write_parquet(tmp_path / "n.parquet")
    model = tmp_path / "m.rankad"
    said = fit(capsys, tmp_path / "n.parquet", model)
    for name in ("tx_id", "epoch", "zip", "status", "merchant"):
        assert f"rankad: note: column '{name}' " in said.err
    confirm = "--id tx_id --time epoch --category zip,status --drop merchant"
    assert f"To confirm: {confirm}" in " ".join(said.out.split())
    silent = fit(capsys, tmp_path / "n.parquet", tmp_path / "again.rankad", *confirm.split(" "))
    assert silent.err == ""
    new = transactions(1_000, 1_001, 1)
    odd = {"status": [201, *new["status"][1:]], "amount": [new["amount"][0], -50.0, 0.0, *new["amount"][3:]]}
    new.with_columns(pl.Series(name, cells) for name, cells in odd.items()).write_parquet(
        tmp_path / "x.parquet"
    )
    for each in (model, tmp_path / "again.rankad"):
        p = p_values(capsys, tmp_path / "x.parquet", each, tmp_path)
        assert (p[:3] == p.min()).all()
        assert p.min() < 0.01
        assert (p <= 0.05).mean() < 0.1


def test_columns_are_split_at_commas_unless_one_is_called_so(capsys, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(60, 4)), schema=["a", "b", "c,d", "e"])
    table = put(frame, tmp_path / "n.csv")
    said = fit(capsys, table, tmp_path / "m.rankad", "--drop", "a,b", "--drop", "c,d", "--json")
    answer = json.loads(said.out)
    assert answer["columns"] == ["e"]
    assert [(note["name"], note["kind"], note["sure"]) for note in answer["understood"]] == [
        ("e", "number", "sure")
    ]
    wrong = call(capsys, "fit", table, "--model", tmp_path / "m.rankad", "--drop", "a,z", "--number", "y")
    assert wrong.status == 1
    assert "no column 'y', which numbers (--number) names" in wrong.err
    assert "no column 'z', which drop (--drop) names" in wrong.err


def test_scored_output_is_refused(capsys, tmp_path):
    frame = pl.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), schema=["a", "b"])
    model, scored = tmp_path / "m.rankad", tmp_path / "scored.csv"
    fit(capsys, put(frame, tmp_path / "n.csv"), model)
    assert call(capsys, "score", tmp_path / "n.csv", "--model", model, "--out", scored).status == 0
    said = call(capsys, "fit", scored, "--model", tmp_path / "new.rankad")
    assert said.status == 1
    assert "--drop p_value,score,alarm" in said.err
    fit(capsys, scored, tmp_path / "new.rankad", "--drop", "p_value,score,alarm")


def test_times_are_hours_and_weekdays_and_later_rows_are_no_alarms(capsys, tmp_path):
    rng = np.random.default_rng(0)

    def log(n, first_day):
        # By day only.
        days, minutes = np.sort(rng.integers(0, 60, size=n)), rng.integers(8 * 60, 18 * 60, size=n)
        begin = datetime.datetime(2024, 1, 1) + datetime.timedelta(days=first_day)
        later = zip(days.tolist(), minutes.tolist(), strict=True)
        times = [begin + datetime.timedelta(days=day, minutes=minute) for day, minute in later]
        return pl.DataFrame({"at": [f"{time:%d.%m.%Y %H:%M}" for time in times], "x": rng.normal(size=n)})

    model = tmp_path / "m.rankad"
    said = fit(capsys, put(log(600, 0), tmp_path / "n.csv"), model)
    assert "time: hour of the day, weekday" in said.out
    later = log(400, 100)
    later = later.with_columns(at=pl.Series(["01.06.2024 03:00", "soon", *later["at"][2:]]))
    p = p_values(capsys, put(later, tmp_path / "x.csv"), model, tmp_path)
    assert p[0] <= 0.02
    assert p[1] == p.min()
    assert (p <= 0.05).mean() < 0.12


def test_a_first_line_of_numbers_is_said_to_look_like_a_row(capsys, tmp_path):
    frame = pl.DataFrame(
        np.random.default_rng(0).normal(size=(60, 3)).round(3), schema=["18.04", "4.38", "mode"]
    )
    said = fit(capsys, put(frame, tmp_path / "n.csv"), tmp_path / "m.rankad")
    assert "column names of" in said.err
    assert "look like a row ('18.04', '4.38')" in said.err
    said = fit(
        capsys, put(frame.rename({"18.04": "a", "4.38": "b"}), tmp_path / "n.csv"), tmp_path / "m.rankad"
    )
    assert "look like a row" not in said.err
