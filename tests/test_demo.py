"""The demonstration: what it counts, what it prints, and where it writes."""

import numpy as np
import pytest
from scipy.stats import beta

from rankad.experiments import breast_cancer as demo


def test_outcomes_by_hand():
    nominal = np.array([0.01, 0.05, 0.06, 0.5, 0.9])
    row = demo.outcomes(nominal, np.array([0.02, 0.05, 0.2, 0.3]), [0.05])[0]
    assert (row.alpha, row.false_alarms, row.n_nominal, row.caught) == (0.05, 2, 5, 0.5)
    # Clopper and Pearson's limits are quantiles of Beta laws.
    np.testing.assert_allclose([row.low, row.high], [beta(2, 4).ppf(0.025), beta(3, 3).ppf(0.975)])


def test_it_prints_a_row_for_every_alpha_and_draws_a_picture(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    demo.main(["--out", str(picture)])
    printed = capsys.readouterr().out
    assert all(f"{alpha:16.0%}   " in printed for alpha in demo.ALPHAS)
    assert "rankad serve --demo" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_is_not_there_is_named_before_any_work(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        demo.main(["--out", str(tmp_path / "nowhere" / "demo.png")])
    captured = capsys.readouterr()
    assert "there is no folder" in captured.err
    assert "nowhere" in captured.err
    assert "Fitting" not in captured.out
