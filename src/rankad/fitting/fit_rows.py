"""Rows as users pass them to a `RankModel`: copies and suspects are left out before a model is fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from rankad._base.arrays import Floats
from rankad.fitting import sizes
from rankad.fitting.doubt import leave_out_copies, warn_of_split
from rankad.fitting.own_rows import with_suspects
from rankad.fitting.pipeline import Fitted, fit_model
from rankad.fitting.plan import Plan
from rankad.fitting.trimming import most_suspicious, suspects, suspicion
from rankad.stages.copies import find_repeats


def fit_rows(plan: Plan, rows: Floats, *, judging: bool) -> Fitted:
    """Fit a model; row numbers in the result count the rows passed in.

    With `judging`, these very rows are to be judged, and any may be an anomaly: suspects do not train.
    """
    repeats = leave_out_copies(find_repeats(rows), len(rows), sizes.LEAST_ROWS, stacklevel=5)
    kept = np.delete(np.arange(len(rows)), repeats)
    auto = plan.trim == "auto" or (judging and plan.trim == 0)
    share = 0.0 if auto else float(plan.trim)
    n_left = len(kept) - int(share * len(kept))
    if n_left < sizes.LEAST_ROWS:
        raise ValueError(
            f"trim={plan.trim!r} leaves {n_left} of {len(kept)} rows; at least {sizes.LEAST_ROWS} are "
            f"needed. Lower trim, or fit on more rows."
        )
    out = kept[:0]
    if auto or judging or n_left < len(kept):
        rng = np.random.default_rng(int(check_random_state(plan.random_state).randint(2**31)))
    if auto:
        # The same draws for the same rows, whatever the seed.
        suspected = suspicion(rows, np.random.default_rng(0), plan.n_jobs)
        out = kept[most_suspicious(suspected[kept], sizes.LEAST_ROWS)]
    elif n_left < len(kept):
        scaling = None if plan.scalings == (None,) else "standard"
        out = kept[suspects(rows[kept], share, scaling, rng, plan.n_jobs)]
    kept = np.setdiff1d(kept, out)
    share_out = len(out) / (len(out) + len(kept))
    if judging and len(kept) > 2 * sizes.MAX_TRAINING_ROWS:
        # With more rows some would be reference rows, which the model has seen and cannot judge.
        kept = np.sort(rng.choice(kept, 2 * sizes.MAX_TRAINING_ROWS, replace=False))
    training = rows if len(kept) == len(rows) else rows[kept]
    entropy = check_random_state(plan.random_state).randint(2**31, size=4)
    fitted = fit_model(plan, training, entropy, judging=judging)
    if fitted.doubt is not None:
        warn_of_split(fitted.doubt, "cross-fitted", stacklevel=4)
        split = plan._replace(calibration="split")
        fitted = fit_model(split, training, entropy, any_seed=True, judging=judging)
    model, calibrating = fitted.model, kept[fitted.calibrating_rows]
    calibration = model.calibration
    if auto and out.size and plan.calibration != "in-sample":
        of_suspects = model.scorer.score(rows[out], n_jobs=plan.n_jobs)
        calibration, calibrating = with_suspects(calibration, calibrating, of_suspects, out, share_out, rng)
    model = replace(
        model,
        calibration=calibration,
        training_rows=kept[model.training_rows],
        reference_rows=kept[model.reference_rows],
        trimmed_rows=out,
        repeated_rows=repeats,
        n_samples_fit=len(rows),
    )
    return fitted._replace(model=model, calibrating_rows=calibrating)
