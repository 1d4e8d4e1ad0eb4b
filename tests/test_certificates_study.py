"""Slices of the studies of certificates and of nonconform: they run, find promises kept, and write pages."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import nonconform
from benchmarks.certificates import drift, many, page, rates, shifts, volumes
from benchmarks.certificates.checks import Check, Mean


@pytest.mark.parametrize(
    "study",
    [
        lambda: rates.split_certificates(60),
        lambda: rates.tied_certificates(60),
        lambda: rates.updated_certificates(30),
        lambda: many.discoveries(25)[1],
        lambda: many.discoveries(25)[0],
        lambda: many.online(10),
        lambda: shifts.shifted(40),
    ],
    ids=["certificates", "ties", "update", "counts", "discoveries", "streams", "weights"],
)
def test_a_slice_of_each_promise_holds(study):
    checks = study()
    assert checks
    assert [one for one in checks if not one.holds] == []


def test_a_promise_that_is_broken_is_seen():
    assert not Check("range", "", 15, 60, 0.05).holds
    assert Check("range", "", 5, 60, 0.05).holds
    assert not Mean("rate", "", 0.15, 0.01, 0.1).holds


def test_false_alarms_without_weights_are_too_many_where_rows_have_moved():
    (_, far) = shifts.shifted(40)
    without = float(re.search(r"([\d.]+) without weights", far.setting)[1])
    assert without > 0.2 > 0.15 > far.mean


def test_a_slice_of_the_volumes_holds():
    found = volumes.of_the_true_score(4)
    assert [(one["d"], one["alpha"]) for one in found] == [(d, a) for d in (2, 5, 10) for a in (0.05, 0.2)]
    assert all(one["holds"] and one["worst"] < 0.05 for one in found)


@pytest.fixture(scope="module")
def streams():
    return drift.drift(25)


def test_few_streams_without_drift_raise_alarms(streams):
    checks, _ = streams
    assert len(checks) == 4
    assert all(check.holds for check in checks)


def test_the_monitor_is_faster_than_windows_that_are_as_often_wrong(streams):
    _, delays = streams
    found = {(one["n"], one["shift"], one["by"]): one["median"] for one in delays}
    for shift in (1.0, 2.0):
        windows = [found[1_000, shift, f"windows of {size} like run"] for size in drift.WINDOWS]
        assert found[1_000, shift, "run"] < min(windows)
    table = page._delays(delays)
    assert len(table) == 2 + 12
    assert all(line.count("|") == table[0].count("|") for line in table)


def test_distances_of_windows_are_those_of_kolmogorov_and_smirnov():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    calibration, rows = np.sort(rng.normal(size=200)), rng.normal(size=drift.LENGTH)
    ends, distances = drift._distances(np.searchsorted(calibration, rows), 200, 50)
    for at in (0, 7, 95):
        expected = ks_2samp(rows[ends[at] - 50 : ends[at]], calibration).statistic
        assert distances[at] == pytest.approx(expected)


def test_the_comparison_with_nonconform_finds_the_same_answers(tmp_path):
    rng = np.random.default_rng(0)
    for name, shift in (("1_near", 2.0), ("2_far", 6.0)):
        rows = np.vstack([rng.normal(size=(240, 2)), shift + rng.normal(size=(20, 2))])
        np.savez(tmp_path / f"{name}.npz", X=rows, y=np.repeat([0, 1], [240, 20]))
    out = tmp_path / "page.md"
    nonconform.main(["--data", str(tmp_path), "--out", str(out), "--seeds", "1"])
    text = out.read_text()
    for answers in ("p-values", "weighted p-values", "alarms by Benjamini-Hochberg"):
        assert re.search(rf"\| {answers} \| [1-9][\d,]* \| 0 \|", text)
    assert "| far | 1.00" in text


def test_another_answer_fails_the_comparison(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "1_set.npz", X=rng.normal(size=(120, 2)), y=np.repeat([0, 1], [110, 10]))
    monkeypatch.setattr(nonconform, "their_p_values", lambda new, known: np.full(len(new), 0.5))
    with pytest.raises(SystemExit, match="Answers differ where the method is the same: p-values"):
        nonconform.main(["--data", str(tmp_path), "--out", str(tmp_path / "p.md"), "--seeds", "1"])
