"""Which columns make rows abnormal, and how they would have to change: arrays in, arrays out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Bools, Floats, Ints
from rankad.explanations.changes import Mover
from rankad.explanations.nominal_rows import NominalRows, Surroundings
from rankad.scorers.fusion import FusedScorer
from rankad.stages.calibration import Calibration

# What a typical range leaves out, below and above.
_TAIL = 0.1
# So many columns are looked for one by one; where they do not do, a nominal row nearby is the target.
_MOST_STEPS = 4
# Where no group alone makes a row nominal, so many of the most surprising are tried as the first of two.
_LOOKED_AT = 2
# Numbers in the rows that are made up and scored together: few enough to stay at hand.
_BLOCK = 2**16


class Findings(NamedTuple):
    """What is found about m rows of d columns in groups.

    `typical`, `low` and `high`, of shape (m, d), are what nominal rows near each row have; where no group
    alone makes a row nominal so, typical is what the other columns predict, if that does. `scores_alone`, of
    shape (m, n_groups), are the scores with each group alone typical. `order` lists the groups that matter
    most first. `changed` are the rows with the smallest change that makes them nominal, unchanged where none
    is needed or found.
    """

    scores: Floats
    typical: Floats
    low: Floats
    high: Floats
    scores_alone: Floats
    order: Ints
    changed: Floats
    changed_scores: Floats


class _Alone(NamedTuple):
    """What is found with each group alone made typical."""

    around: Surroundings
    low: Floats
    high: Floats
    scores: Floats
    surprise: Floats


class _Blame(NamedTuple):
    """The groups to blame for each row, in order (-1: no more), and rows with these typical."""

    groups: Ints
    targets: Floats


class Search:
    """Looks for the columns that make rows abnormal; safe on threads."""

    def __init__(
        self, scorer: FusedScorer, calibration: Calibration, alpha: float, nominal: NominalRows
    ) -> None:
        self._scorer, self._nominal = scorer, nominal
        self._threshold = calibration.threshold(alpha)
        self._mover = Mover(nominal, self._is_nominal)
        self._comfortable = np.flatnonzero(self._is_nominal(nominal.rows))

    def _score(self, rows: Floats) -> Floats:
        return self._scorer.score(rows, n_jobs=1)

    def _is_nominal(self, rows: Floats) -> Bools:
        return self._score(rows) >= self._threshold

    def look(self, rows: Floats) -> Findings:
        """Look at some rows, of shape (m, d)."""
        scores, nominal = self._score(rows), self._nominal
        nobody = np.zeros((len(rows), nominal.n_groups), dtype=np.bool_)
        around = nominal.around(rows, nobody)
        low, high = (
            np.broadcast_to(limit, rows.shape) for limit in nominal.quantiles(around.near, _TAIL, 1 - _TAIL)
        )
        scores_alone = self._scores_with(rows, around.typical, nobody)
        typical = np.empty_like(rows)
        for group, columns in enumerate(nominal.groups):
            typical[:, columns] = nominal.rows[around.typical[:, group, None], columns]
        self._expect(rows, scores, typical, scores_alone)
        alone = _Alone(around, low, high, scores_alone, nominal.surprise(rows, low, high))
        blame = self._blame(rows, scores, alone, typical)
        order = _in_order(blame.groups, alone)
        changed = self._change(rows, scores, blame.targets, order)
        return Findings(scores, typical, low, high, alone.scores, order, changed, self._score(changed))

    def _expect(self, rows: Floats, scores: Floats, typical: Floats, scores_alone: Floats) -> None:
        """Put into `typical` what the other columns predict, where only that makes a row nominal.

        Where columns obey a sum, no nominal row near by has just the value that the others leave to one of
        them. `scores_alone` follows. Columns of groups, and those in which values repeat, stay as they are.
        """
        hard = np.flatnonzero((scores < self._threshold) & (scores_alone.max(axis=1) < self._threshold))
        expected = self._nominal.expected(rows[hard]) if hard.size else None
        if expected is None:
            return
        for group, columns in enumerate(self._nominal.groups):
            if len(columns) > 1 or self._mover.repeats[columns[0]]:
                continue
            tried = rows[hard].copy()
            tried[:, columns[0]] = expected[:, columns[0]]
            reached = self._score(tried)
            mends = reached >= self._threshold
            typical[hard[mends], columns[0]] = expected[mends, columns[0]]
            scores_alone[hard[mends], group] = reached[mends]

    def _scores_with(self, rows: Floats, typical: Ints, left_out: Bools) -> Floats:
        """Return the scores with each group in turn, and those left out, typical: (m, n_groups)."""
        scores, n_groups, d = np.empty(typical.shape), typical.shape[1], rows.shape[1]
        together = max(1, _BLOCK // (n_groups * d))
        for begin in range(0, len(rows), together):
            part = slice(begin, begin + together)
            tried = self._nominal.made_typical(rows[part], typical[part], left_out[part])
            scores[part] = self._score(tried.reshape(-1, d)).reshape(-1, n_groups)
        return scores

    def _blame(self, rows: Floats, scores: Floats, alone: _Alone, typical: Floats) -> _Blame:
        """Add group after group, always the one that raises the score most, until the row is nominal."""
        left_out = np.zeros(alone.scores.shape, dtype=np.bool_)
        groups, targets = np.full((len(rows), _MOST_STEPS), -1), rows.copy()
        around, reached = alone.around, alone.scores
        now = going = pick = np.arange(len(rows))
        # With all groups left out, there would be nothing to be near by.
        for step in range(min(_MOST_STEPS, max(1, self._nominal.n_groups - 1))):
            if step:
                around = self._nominal.around(rows[now], left_out[now], around.near[going, pick[going]])
                reached = self._scores_with(rows[now], around.typical, left_out[now])
                reached[left_out[now]] = -np.inf
            # Where scores are as low as can be whatever is changed, the most surprising group comes first.
            best = reached == reached.max(axis=1, keepdims=True)
            pick = np.where(best, alone.surprise[now], -1.0).argmax(axis=1)
            if step == 0 and self._nominal.n_groups > 2:
                pick = self._look_ahead(rows, scores, alone, pick)
            each = np.arange(now.size)
            groups[now, step], left_out[now, pick] = pick, True
            made = self._nominal.rows[around.typical[each, pick]] if step else typical
            targets[now] = np.where(self._nominal.columns_of(left_out[now]), made, rows[now])
            going = np.flatnonzero((reached[each, pick] < self._threshold) & (scores[now] < self._threshold))
            now = now[going]
            if not now.size:
                break
        return _Blame(groups, targets)

    def _look_ahead(self, rows: Floats, scores: Floats, alone: _Alone, pick: Ints) -> Ints:
        """Return the first group to blame: the pick or a surprising one, whichever helps most in two steps.

        Where two columns go together and both are off, to mend one of them breaks what they obey, and is
        worse than to mend nothing. So where no group alone makes the row nominal, the second is tried too.
        """
        pick = pick.copy()
        mended = alone.scores[np.arange(len(rows)), pick] >= self._threshold
        hard = np.flatnonzero((scores < self._threshold) & ~mended)
        if not hard.size:
            return pick
        surprising = np.argsort(-alone.surprise[hard], axis=1, kind="stable")[:, :_LOOKED_AT]
        most = np.full(hard.size, -np.inf)
        chosen = pick[hard]
        for first in np.column_stack([pick[hard], surprising]).T:
            left_out = np.zeros(alone.scores[hard].shape, dtype=np.bool_)
            left_out[np.arange(hard.size), first] = True
            around = self._nominal.around(rows[hard], left_out, alone.around.near[hard, first])
            reached = self._scores_with(rows[hard], around.typical, left_out)
            reached[left_out] = -np.inf
            better = reached.max(axis=1) > most
            most = np.where(better, reached.max(axis=1), most)
            chosen = np.where(better, first, chosen)
        pick[hard] = chosen
        return pick

    def _change(self, rows: Floats, scores: Floats, targets: Floats, order: Ints) -> Floats:
        """Return the rows with the smallest change that makes them nominal; as they are where none does."""
        changed = rows.copy()
        alarms = np.flatnonzero(scores < self._threshold)
        if not alarms.size or not self._comfortable.size:
            return changed
        ends = targets[alarms]
        lost = np.flatnonzero(~self._is_nominal(ends))
        if lost.size:
            within = self._nominal.within_reach(rows[alarms[lost]])
            near = self._nominal.nearest(within, 1, self._comfortable)
            ends[lost] = self._nominal.rows[near.indices[:, 0]]
        changed[alarms] = self._mover.shrink(rows[alarms], ends, order[alarms])
        return changed


def _in_order(blamed: Ints, alone: _Alone) -> Ints:
    """Return all groups of each row: those to blame first, then the others by surprise, then by score."""
    place = np.full(alone.surprise.shape, blamed.shape[1])
    for step, groups in enumerate(blamed.T):
        there = np.flatnonzero(groups >= 0)
        place[there, groups[there]] = step
    return np.lexsort((-alone.scores, -alone.surprise, place), axis=-1)
