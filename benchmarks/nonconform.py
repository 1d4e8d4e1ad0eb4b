"""``python -m benchmarks.nonconform``: p-values and false discovery rates beside the package nonconform.

Where nonconform is not installed (it needs Python 3.12; extra ``bench``), its documented formulas take its
place.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import logging
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

from benchmarks.quality.sets import data_folder, find_sets, load_set
from rankad import RankAD, conditional_p_values, storey, weighted_p_values
from rankad._base.arrays import Bools, Floats
from rankad.alarms.decisions import PValueCounts
from rankad.experiments.cells import write_atomically
from rankad.experiments.datasets import Dataset
from rankad.stages.calibration import Calibration

__all__ = ["main"]

RATES = (0.05, 0.1, 0.2)
# Normal rows known, half of which train and half calibrate, and normal rows tested; a tenth are anomalies.
MOST_KNOWN, MOST_TESTED, SHARE = 2_000, 1_000, 0.1


# Which way, which method, which q.
Key = tuple[str, str, float]


class Rows(NamedTuple):
    """The rows of one data set and seed."""

    train: Floats
    calibrate: Floats
    test: Floats
    anomalous: Bools


def split(data: Dataset, seed: int) -> Rows:
    """Split a data set: half of the normal rows are known, the others are tested with anomalies."""
    rng = np.random.default_rng(seed)
    normal, anomalies = (rng.permutation(np.flatnonzero(data.y == label)) for label in (0, 1))
    n_known = min(MOST_KNOWN, normal.size // 2)
    known, tested = data.X[normal[:n_known]], normal[n_known : n_known + MOST_TESTED]
    anomalies = anomalies[: max(1, round(tested.size * SHARE / (1 - SHARE)))]
    test = data.X[np.concatenate([tested, anomalies])]
    return Rows(known[: n_known // 2], known[n_known // 2 :], test, np.arange(len(test)) >= tested.size)


# ------------------------------------------------------------------------------- nonconform, or its formulas


def their_p_values(scores: Floats, calibration: Floats) -> Floats:
    """Return nonconform's classical p-values; their scores are higher for anomalies."""
    if _installed():
        from nonconform.scoring import calculate_p_val

        return np.asarray(calculate_p_val(-scores, -calibration))
    return np.asarray((1 + (calibration <= scores[:, None]).sum(axis=1)) / (calibration.size + 1))


def their_weighted(scores: Floats, calibration: Floats, own: Floats, weights: Floats) -> Floats:
    """Return nonconform's weighted p-values."""
    if _installed():
        from nonconform.scoring import calculate_weighted_p_val

        return np.asarray(calculate_weighted_p_val(-scores, -calibration, own, weights))
    below = (weights * (calibration <= scores[:, None])).sum(axis=1)
    return np.asarray((below + own) / (weights.sum() + own))


def their_conditional(scores: Floats, calibration: Floats, delta: float) -> Floats:
    """Return nonconform's conditional p-values by the inequality of Simes (Bates et al. 2023)."""
    if _installed():
        from nonconform.scoring import ConditionalEmpirical

        made = ConditionalEmpirical(delta=delta, method="simes")
        return np.asarray(made.compute_p_values(-scores, -calibration))
    n, k = calibration.size, max(1, calibration.size // 2)
    logs = np.log(np.arange(1, n + 1))
    means = np.convolve(logs, np.ones(k) / k, mode="valid")
    bounds = np.r_[np.zeros(k - 1), np.exp(means + np.log(delta) / k - logs[n - k :].mean())]
    places = np.floor((n + 1) * (1 - their_p_values(scores, calibration)) + 1e-9).astype(int)
    return np.asarray(1 - bounds[np.clip(places, 1, n) - 1])


def their_selection(p_values: Floats, rate: float, method: str, n: int) -> Bools:
    """Return the rows that nonconform selects."""
    if _installed():
        from nonconform._internal.p_value_selection import adjusted_p_values

        return np.asarray(adjusted_p_values(p_values, method=method, n_calibration=n) <= rate)
    adjusted = false_discovery_control(p_values)
    if method == "storey":
        threshold = np.ceil((n + 1) / 2) / (n + 1)
        above = (p_values >= threshold).sum()
        adjusted = np.minimum(1, (1 + above) / (p_values.size * (1 - threshold)) * adjusted)
    return np.asarray(adjusted <= rate)


def their_detector(rows: Rows, seed: int, strategy: str) -> Floats:
    """Return p-values of nonconform's own detector around an isolation forest, fitted on all known rows."""
    from nonconform import ConformalDetector, CrossValidation, Split

    made = ConformalDetector(
        detector=IsolationForest(random_state=seed),
        strategy=Split(n_calib=0.5) if strategy == "split" else CrossValidation(k=5),
        score_polarity="higher_is_normal",
        seed=seed,
    )
    return np.asarray(made.fit(np.vstack([rows.train, rows.calibrate])).compute_p_values(rows.test))


def _installed() -> str:
    """Return the version of nonconform, or nothing."""
    try:
        import nonconform.scoring  # noqa: F401

        return importlib.metadata.version("nonconform")
    except (ImportError, SyntaxError):
        return ""


# ------------------------------------------------------------------------------------------------- the study

SCORERS: dict[str, Callable[[Rows, int], Callable[[Floats], Any]]] = {
    "isolation forest": lambda rows, seed: IsolationForest(random_state=seed).fit(rows.train).score_samples,
    "5 nearest neighbours": lambda rows, seed: _neighbours(rows.train),
    "RankAD's score": lambda rows, seed: RankAD(random_state=seed, n_jobs=1).fit(rows.train).score_samples,
}


def _neighbours(train: Floats) -> Callable[[Floats], Floats]:
    known = NearestNeighbors(n_neighbors=5).fit(train)
    return lambda rows: -np.asarray(known.kneighbors(rows)[0].mean(axis=1))


def benjamini_hochberg(p_values: Floats, rate: float) -> Bools:
    """Return the alarms as ``rankad score --fdr`` finds them."""
    counts = PValueCounts()
    counts.add(p_values)
    return np.asarray(p_values <= counts.level(rate))


def compare(
    rows: Rows, seed: int
) -> tuple[dict[str, int], dict[tuple[str, str, float], tuple[float, float]]]:
    """Return how many answers differ, and the false share and the power of each way, method and rate."""
    differ: dict[str, int] = defaultdict(int)
    found: dict[Key, tuple[float, float]] = {}
    n, rng = len(rows.calibrate), np.random.default_rng([seed, 1])
    for name, make in SCORERS.items():
        score = make(rows, seed)
        new, known = np.asarray(score(rows.test)), np.asarray(score(rows.calibrate))
        ours, theirs = Calibration.from_scores(known, "split").p_values(new), their_p_values(new, known)
        differ["p-values"] += int((ours != theirs).sum())
        own, weights = rng.lognormal(size=new.size), rng.lognormal(size=n)
        weighted = weighted_p_values(new, own, known, weights), their_weighted(new, known, own, weights)
        differ["weighted p-values"] += int((~np.isclose(*weighted, rtol=1e-12, atol=0)).sum())
        conditional = conditional_p_values(ours, n, 0.1, "simes"), their_conditional(new, known, 0.1)
        differ["conditional p-values (Simes)"] += int((~np.isclose(*conditional, rtol=1e-9)).sum())
        differ["conditional p-values (Simes), theirs smaller"] += int(
            (conditional[1] < conditional[0] - 1e-9).sum()
        )
        for rate in RATES:
            alarms = {
                ("bh", "rankad"): benjamini_hochberg(ours, rate),
                ("bh", "nonconform"): their_selection(theirs, rate, "bh", n),
                ("storey", "rankad"): storey(ours, rate, n_calibration=n),
                ("storey", "nonconform"): their_selection(theirs, rate, "storey", n),
            }
            differ["alarms by Benjamini-Hochberg"] += int(
                (alarms["bh", "rankad"] != alarms["bh", "nonconform"]).sum()
            )
            for (method, who), raised in alarms.items():
                # Those by Benjamini-Hochberg are the same: `main` fails if not.
                who = "both" if method == "bh" else who
                found[f"{who}, {name}, split", method, rate] = _judged(raised, rows.anomalous)
    detector = RankAD(random_state=seed, n_jobs=1).fit(np.vstack([rows.train, rows.calibrate]))
    p_values = np.asarray(detector.p_values(rows.test))
    for rate in RATES:
        found["rankad, default", "bh", rate] = _judged(benjamini_hochberg(p_values, rate), rows.anomalous)
    for strategy in ("split", "cross-validation") if _installed() else ():
        p_values = their_detector(rows, seed, strategy)
        for rate in RATES:
            raised = their_selection(p_values, rate, "bh", n)
            key = f"nonconform's detector, isolation forest, {strategy}", "bh", rate
            found[key] = _judged(raised, rows.anomalous)
    return differ, found


def _judged(alarms: Bools, anomalous: Bools) -> tuple[float, float]:
    false = float((alarms & ~anomalous).sum() / max(1, alarms.sum()))
    return false, float((alarms & anomalous).sum() / anomalous.sum())


# -------------------------------------------------------------------------------------------------- the page


def page(
    differ: Mapping[str, int],
    n_compared: Mapping[str, int],
    found: Mapping[Key, Mapping[str, Floats]],
    seeds: int,
    seconds: float,
) -> str:
    """Return the page: what is the same, and means over data sets."""
    theirs, n_sets = _what_stands_for_it(), len(next(iter(found.values())))
    lines = [
        "# Beside nonconform",
        "",
        "Written by `python -m benchmarks.nonconform`, with",
        f"{theirs}.",
        f"{n_sets} data sets, seeds 0 to {seeds - 1}, {seconds / 60:.0f} minutes of processor time.",
        "",
        "Half of the normal rows are known, 2,000 at most; half of these train, half calibrate. The tested",
        "rows are other normal ones, 1,000 at most, with anomalies for a tenth of the batch.",
        "",
        "## The same method on the same scores",
        "",
        "Scores of three kinds, calibrated and judged by both:",
        "",
        "| answers | compared | that differ |",
        "|---|---|---|",
        *(f"| {name} | {n_compared[name]:,} | {count:,} |" for name, count in differ.items()),
        "",
        "Simes: `floor((n + 1) (1 - p))` of nonconform is one less in floating point for some p-values, and",
        "then the next larger bound is taken. Storey's rule differs a little: its threshold is rounded to a",
        "p-value that there can be, downwards here and upwards there.",
        "",
        "## False discoveries and power",
        "",
        "Means over data sets (each the mean over seeds) of the share of false ones among the alarms, with",
        "its standard error, which is at most q if all is right; and of the share of anomalies found.",
        "`rankad, default` is `RankAD().fit` on all known rows (cross-fit).",
        "",
        *_what_is_compared(found),
        "",
    ]
    for method, title in (("bh", "Benjamini-Hochberg"), ("storey", "Storey")):
        names = list(dict.fromkeys(name for name, kind, _ in found if kind == method))
        lines += [
            f"### {title}",
            "",
            f"| | {' | '.join(f'q = {rate:g}: false | found' for rate in RATES)} |",
            f"|---|{'---|' * (2 * len(RATES))}",
        ]
        for name in names:
            cells = []
            for rate in RATES:
                each = np.array(list(found[name, method, rate].values()))
                false, power = each.mean(axis=(0, 1))
                per_set = each[:, :, 0].mean(axis=1)
                error = per_set.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
                cells += [f"{false:.3f} ± {error:.3f}", f"{power:.3f}"]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    lines += _set_by_set(found)
    return "\n".join(lines) + "\n"


def _what_is_compared(found: Mapping[Key, Mapping[str, Floats]]) -> list[str]:
    """Say which lines compare the packages and which compare scores."""
    rate = RATES[1]
    power = {
        name: float(np.array(list(sets.values())).mean(axis=(0, 1))[1])
        for (name, method, q), sets in found.items()
        if method == "bh" and q == rate
    }
    own = power.pop("rankad, default")
    best = max(power, key=lambda name: power[name])
    return [
        "With the same scores and the same split, both packages raise the same alarms, row by row (the table",
        "above), so that false discoveries and power are equal by construction: these are the lines `both`.",
        "What can differ is the score. `rankad, default` against the others compares scores, and no score is",
        f"the best on every set. At q = {rate:g} it finds {own:.3f} of the anomalies, mean over sets; the",
        f"best of the others ({best}) {power[best]:.3f}. Set by set, another score may find more:",
        "the last table and the sentence below it. Any score can be calibrated with rankad, by",
        '`rankad.Calibration.from_scores(scores, "split").p_values(new_scores)`.',
    ]


def _what_stands_for_it() -> str:
    version = _installed()
    if not version:
        return "the formulas that nonconform documents (it was not installed)"
    old = sys.version_info < (3, 12)
    return f"nonconform {version}" + (
        " (made for Python 3.12; for an older one its annotations were rewritten)" if old else ""
    )


def _set_by_set(found: Mapping[Key, Mapping[str, Floats]]) -> list[str]:
    """Power on each set at the middle rate: RankAD as it is by default, beside the best of the others."""
    rate = RATES[1]
    names = [name for name, method, q in found if method == "bh" and q == rate and name != "rankad, default"]
    lines = [
        "### Set by set",
        "",
        f"Anomalies found (false ones among the alarms) at q = {rate:g}, Benjamini-Hochberg:",
        "",
        f"| | {' | '.join(['rankad, default', *names])} |",
        f"|---|{'---|' * (1 + len(names))}",
    ]
    behind = []
    for which in found["rankad, default", "bh", rate]:
        means = [found[name, "bh", rate][which].mean(axis=0) for name in ("rankad, default", *names)]
        lines.append(f"| {which} | {' | '.join(f'{power:.2f} ({false:.2f})' for false, power in means)} |")
        powers = [round(float(power), 2) for _, power in means]
        if powers[0] < max(powers):
            behind.append(f"{which} ({powers[0]:.2f} beside {max(powers):.2f})")
    few = ", ".join(behind) or "no set"
    return [*lines, "", f"`rankad, default` finds fewer than the best of the others on {few}."]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page; fail where the same method gives other answers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonconform", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of .npz files [default: RANKAD_DATA]")
    parser.add_argument("--out", type=Path, default=Path("docs/nonconform.md"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", help="names of data sets [default: all]")
    given = parser.parse_args(arguments)
    logging.getLogger("nonconform").setLevel(logging.ERROR)
    begin = time.process_time()
    differ: dict[str, int] = defaultdict(int)
    n_compared: dict[str, int] = defaultdict(int)
    found: dict[Key, dict[str, Any]] = defaultdict(dict)
    for one in find_sets(data_folder(given.data)):
        if given.sets and one.name not in given.sets:
            continue
        data = load_set(one.path, one.digest)
        for seed in range(given.seeds):
            rows = split(data, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                different, judged = compare(rows, seed)
            for name, count in different.items():
                differ[name] += count
                times = len(RATES) if name.startswith("alarms") else 1
                n_compared[name] += len(rows.test) * len(SCORERS) * times
            for key, value in judged.items():
                found[key].setdefault(one.name, []).append(value)
        print(one.name, round(time.process_time() - begin), flush=True)
    arrays = {key: {name: np.array(each) for name, each in sets.items()} for key, sets in found.items()}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(given.out, page(differ, n_compared, arrays, given.seeds, time.process_time() - begin))
    wrong = [name for name, count in differ.items() if count and name != "conditional p-values (Simes)"]
    if wrong:
        raise SystemExit(f"Answers differ where the method is the same: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()
