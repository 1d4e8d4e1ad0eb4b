"""What is learned from nominal rows, and from each of them left out."""

import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from rankad import RankAD, TableDetector
from rankad.columns.inferred import ColumnOptions
from rankad.tables import ColumnWarning, TableEncoder, Untyped
from rankad.tables.learning import learn_encoder
from rankad.tables.strange_cells import NEW_CATEGORY, NEW_VALUE, NOT_POSITIVE

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.columns import as_text, text_law

QUICK = {"scaling": "standard", "bandwidth": "D_K", "C": 0.05}


def text(**columns):
    return Untyped(pl.DataFrame(columns).cast(pl.String))


def strange(encoder, **cells):
    return [(cell.row, cell.what) for cell in encoder.encode(cells).strange]


def test_a_code_never_seen_is_strange():
    rng = np.random.default_rng(0)
    encoder = TableEncoder.fit({"status": rng.choice([200, 301, 404], size=300)})
    assert encoder.columns[0].kind == "category"
    for cells in ([201, 404], ["201", "404"], [201.0, 404.0]):
        assert strange(encoder, status=cells) == [(0, NEW_CATEGORY)]


def test_few_values_are_all_there_are_and_a_sign_never_seen_is_strange():
    rng = np.random.default_rng(0)
    encoder = TableEncoder.fit(
        {"grade": rng.integers(1, 7, size=300), "amount": np.exp(rng.normal(size=300))}
    )
    assert encoder.columns[0].values == (1, 2, 3, 4, 5, 6)
    assert strange(encoder, grade=[7, 3, 2.5], amount=[1, 1, 1]) == [(0, NEW_VALUE), (2, NEW_VALUE)]
    assert strange(encoder, grade=[1, 1, 1], amount=[-50, 0, 1e-9]) == [(0, NOT_POSITIVE), (1, NOT_POSITIVE)]
    # Far from zero, or with both signs, nothing is said.
    free = TableEncoder.fit({"x": rng.normal(70, 5, size=300), "y": rng.normal(size=300)})
    assert strange(free, x=[-50], y=[-50]) == []


@pytest.mark.parametrize(
    ("cells", "n_singletons"),
    [
        ([1.0] * 60 + [2.0] * 60 + [3.0], 1),
        ([1.0] * 60 + [2.0] * 60 + [3.0, 4.0], 0),
        ([1.0] * 60 + [2.0] * 60 + [3.0] * 3, 0),
        ([*np.linspace(0.1, 9, 150), -1.0], 1),
        ([*np.linspace(0.1, 9, 150), 0.0], 1),
        ([*np.linspace(0.1, 9, 150), 0.0, 0.0, -1.0], 1),
        ([*np.linspace(0.1, 9, 150), -1.0, -2.0], 0),
    ],
)
def test_rows_that_would_be_strange_are_those_left_out(cells, n_singletons):
    cells = np.random.default_rng(0).permutation(cells).tolist()
    learned = learn_encoder({"x": cells}, ColumnOptions(), min_count=5)
    found = [
        row
        for row in range(len(cells))
        if TableEncoder.fit({"x": cells[:row] + cells[row + 1 :]}).encode({"x": [cells[row]]}).strange
    ]
    assert learned.singletons.tolist() == found
    assert len(found) == n_singletons


def test_rows_that_would_be_encoded_otherwise_are_those_left_out():
    rng = np.random.default_rng(1)
    words = rng.choice(
        [f"w{i}" for i in range(30)], p=(w := 1 / np.arange(1, 31)) / w.sum(), size=120
    ).tolist()
    learned = learn_encoder({"w": words}, ColumnOptions(), min_count=5)
    (column,) = learned.encoder.columns
    found = []
    for row, word in enumerate(words):
        (other,) = TableEncoder.fit({"w": words[:row] + words[row + 1 :]}).columns
        if (word in column.categories) != (word in other.categories):
            found.append(row)
    (regrouped,) = learned.regrouped
    assert regrouped.rows.tolist() == found
    assert regrouped.as_rare.tolist() == [0.0] * len(column.categories) + [pytest.approx(np.sqrt(0.5))]


def test_the_hundred_and_first_word_counts_too():
    words = [f"w{i:03d}" for i in range(102) for _ in range(8 - (i >= 50))]
    learned = learn_encoder({"w": words}, ColumnOptions(categories=["w"]), min_count=5)
    (column,) = learned.encoder.columns
    assert len(column.categories) == 100
    (regrouped,) = learned.regrouped
    expected = [
        row
        for row, word in enumerate(words)
        if word in column.categories
        and word
        not in TableEncoder.fit({"w": words[:row] + words[row + 1 :]}, categories=["w"]).columns[0].categories
    ]
    assert regrouped.rows.tolist() == expected


def test_all_that_is_wrong_is_told_at_once():
    frame = {"a": [[1]] * 9, "b": [1.0, 2.0, 4.0] * 3, "c": [{"x": 1}] * 9}
    with pytest.raises(ValueError, match=r"2 columns cannot be used: column 'a' .* column 'c' "):
        TableEncoder.fit(frame)
    with pytest.raises(
        ValueError, match=r"no column 'z', which numbers.* no column 'y', which times.* decimal must be"
    ):
        TableEncoder.fit(frame, numbers=["z"], times=["y"], decimal=";")


def test_output_of_score_is_refused():
    rng = np.random.default_rng(0)
    scored = {
        "x": rng.normal(size=50),
        "p_value": rng.random(50),
        "score": rng.normal(size=50),
        "alarm": [False] * 50,
    }
    with pytest.raises(ValueError, match=r"as rankad score writes them.*--drop p_value,score,alarm"):
        TableEncoder.fit(scored)
    assert TableEncoder.fit(scored, drop=["p_value", "score", "alarm"]).names == ("x",)
    assert TableEncoder.fit({name: scored[name] for name in ("x", "score")}).names == ("x", "score")


def test_what_the_user_says_is_done_and_not_doubted():
    rng = np.random.default_rng(0)
    cells = {
        "n": [str(i) for i in range(60)],
        "t": [str(1_700_000_000 + 3_600 * int(i)) for i in rng.permutation(60)],
        "d": ["03/04/2024", "05/06/2024"] * 30,
        "c": [f"{v},{w:03d}" for v, w in rng.integers(10, 99, size=(60, 2))],
    }
    encoder = TableEncoder.fit(
        text(**cells), numbers=["n", "c"], times=["t", "d"], decimal=",", day_first=False
    )
    assert [column.kind for column in encoder.columns] == ["number", "time", "time", "number"]
    assert not any(note.doubt for note in encoder.notes)
    assert encoder.columns[2].times(pl.Series(cells["d"]))[0].month == 3
    assert encoder.columns[3].read(pl.Series(["12,345"])).tolist() == [12.345]


def test_python_warns_with_the_words_of_the_notes():
    rng = np.random.default_rng(0)
    frame = {"x": rng.normal(size=60), "tx_id": np.arange(60)}
    quick = RankAD(0.1, scaling=None, bandwidth="D_K", C=0.1, calibration="split", random_state=0)
    with pytest.warns(ColumnWarning, match=r"column 'tx_id' is taken as an id") as caught:
        detector = TableDetector(quick).fit(frame)
    notes = {note.name: note for note in detector.encoder_.notes}
    assert [str(each.message) for each in caught] == [notes["tx_id"].doubt]
    assert re.search(r"--id tx_id \(ids=\['tx_id'\]\)", notes["tx_id"].doubt)
    # New ids are no alarm.
    new = {"x": rng.normal(size=500), "tx_id": np.arange(60, 560)}
    assert (detector.predict(new) < 0).mean() < 0.3


def test_false_alarms_are_as_asked_for_with_text_of_many_words():
    """A cheap slice of `python -m benchmarks.columns`; words are frequent by chance alone.

    Were rows to calibrate with the indicators that they have brought about themselves, 3.3 % of these rows
    would be alarms at 10 %.
    """
    draw, n, n_fresh, found = text_law(400, 0.0), 800, 4_000, []
    for seed in range(4):
        rng = np.random.default_rng([29, seed])
        inner = RankAD(scaling="standard", bandwidth="D_K", C=0.1, landmarks=60, random_state=0)
        detector = TableDetector(inner, categories=["word"]).fit(Untyped(as_text(draw(n, rng))))
        assert len(detector.encoder_.columns[3].categories) > 10
        found.append(detector.p_values(as_text(draw(n_fresh, rng))))
    for alpha in (0.1, 0.05, 0.01):
        rate = float(np.mean([(p <= alpha).mean() for p in found]))
        # A row left out counts for a third of an independent one.
        error = np.sqrt(alpha * (1 - alpha) * (3 / n + 1 / n_fresh) / len(found))
        assert abs(rate - alpha) < norm.isf(0.0005) * error + 1 / (n + 1), (alpha, rate)


def error_codes(n, rng):
    """Numbers, and in one row of ten an error code of which there are hundreds."""
    numbers = [f"{x:.2f}" for x in rng.normal(size=n)]
    codes = [f"ERR{code}" for code in rng.integers(1, 500, n)]
    return [
        code if one < 0.1 else number for one, code, number in zip(rng.random(n), codes, numbers, strict=True)
    ]


def test_words_of_all_kinds_in_a_column_of_numbers_count_as_missing_and_keep_the_promise():
    rng = np.random.default_rng(3)
    rates = []
    for _ in range(4):
        table = {"e": error_codes(700, rng), "v": [f"{x:.2f}" for x in rng.normal(size=700)]}
        with pytest.warns(ColumnWarning, match="'e'"):
            detector = TableDetector(RankAD(0.1, **QUICK)).fit(Untyped(pl.DataFrame(table)))
        fresh = {"e": error_codes(2_000, rng), "v": [f"{x:.2f}" for x in rng.normal(size=2_000)]}
        rates.append(np.mean(detector.predict(pl.DataFrame(fresh)) < 0))
        assert detector.encoder_.columns[0].any_word
        assert detector.encoder_.n_singletons == 0
    # Four calibrations by 700 rows, each left out and worth a third: a standard deviation of one point.
    assert 0.07 < np.mean(rates) < 0.13


def test_a_word_of_one_row_is_strange_and_the_columns_of_singletons_are_named():
    numbers = [f"{x:.2f}" for x in np.random.default_rng(0).normal(size=40)]
    frame = pl.DataFrame({"e": ["ERR7", *numbers[1:]], "v": numbers[::-1]})
    chiefly = "1 of 40 normal rows have something that no other has, chiefly in 'e'"
    with pytest.warns(ColumnWarning, match="'e'"), pytest.warns(UserWarning, match=chiefly):
        detector = TableDetector(RankAD(0.026, **QUICK)).fit(Untyped(frame))
    assert not detector.encoder_.columns[0].any_word
    assert [cell.value for cell in detector.strange_cells(pl.DataFrame({"e": ["ERR8"], "v": ["0.1"]}))] == [
        "ERR8"
    ]
