"""Alarms of a stream of which a bounded share is expected to be false, at every time."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Bools
from rankad._base.checks import check_choice, check_unit, is_count
from rankad.certificates.discoveries import checked_p_values

_METHODS = ("lond", "lond-dependent", "batch")


class OnlineAlarms:
    """Decides row by row, or batch by batch, and keeps the false discovery rate of all alarms so far.

    At a fixed alpha, a stream of normal rows raises alarms for ever, and where anomalies are rare most alarms
    are false. Here each decision is final and made when its row comes, and at any time the expected share
    of false ones among all alarms so far is at most q. The package ``online-fdr`` decides (extra ``online``).

    P-values of one detector share calibration rows and so depend on one another, positively (see
    `rankad.certificates.discoveries`). The default is made for that:

    - "lond": LOND (Javanmard and Montanari 2018), which holds for positively dependent p-values (Zrnic,
      Ramdas, Jordan 2021).
    - "lond-dependent": LOND for any dependence, for cross-fitted detectors, of whose p-values less is known.
    - "batch": the rule of Benjamini and Hochberg on each batch, at levels that depend on those before
      (BatchPRDS; Zrnic, Jiang, Ramdas, Jordan 2020). The most alarms where rows come in batches.

    P-values of n calibration rows are never below ``1 / (n + 1)``, and levels fall with every row that is no
    alarm. Once they are below that, no row can be an alarm any more: `is_silent` says so. LOND at q = 0.1 is
    silent after 2 quiet rows with 1,000 calibration rows, and after 400 with 100,000. Prefer "batch".

    Parameters
    ----------
    q : float
        The false discovery rate.
    n_calibration : int
        Calibration rows, ``detector.calibration_.scores.size``.
    method : {"lond", "lond-dependent", "batch"}

    Attributes
    ----------
    n_rows, n_alarms : int
        So far.

    Examples
    --------
    >>> online = OnlineAlarms(0.1, n_calibration=9999, method="batch")
    >>> online.update([0.0001, 0.5, 0.0002, 0.9])
    array([ True, False,  True, False])
    >>> online = OnlineAlarms.from_json(online.to_json())
    >>> online.n_alarms, online.is_silent
    (2, False)
    """

    def __init__(
        self, q: float, n_calibration: int, method: Literal["lond", "lond-dependent", "batch"] = "lond"
    ) -> None:
        check_choice("method", method, _METHODS)
        if not is_count(n_calibration) or n_calibration < 1:
            raise ValueError(f"n_calibration must be an integer >= 1, got {n_calibration!r}.")
        self.q, self.n_calibration, self.method = check_unit("q", q), int(n_calibration), method
        self.n_rows = self.n_alarms = 0
        self._test = self._new_test()

    def update(self, p_values: ArrayLike) -> Bools:
        """Decide on more rows, in their order; for the method "batch" they are one batch.

        Returns
        -------
        ndarray of bool, shape (m,)
            True for alarms. They are final.
        """
        values = checked_p_values(p_values).tolist()
        if self.method == "batch":
            alarms = np.array(self._test.test_batch(values), dtype=bool)
        else:
            alarms = np.array([self._test.test_one(value) for value in values], dtype=bool)
        self.n_rows += len(values)
        self.n_alarms += int(alarms.sum())
        return alarms

    @property
    def is_silent(self) -> bool:
        """Whether even the smallest p-value there can be would be no alarm for the next row.

        Of the method "batch": for the next batch of as many rows as there are calibration rows.
        """
        copy = type(self).from_json(self.to_json())
        n = self.n_calibration if self.method == "batch" else 1
        return not copy.update(np.full(n, 1 / (self.n_calibration + 1))).any()

    def to_json(self) -> str:
        """Return the state as a line of JSON; `from_json` goes on from there."""
        parameters = {"q": self.q, "n_calibration": self.n_calibration, "method": self.method}
        counts = {"n_rows": self.n_rows, "n_alarms": self.n_alarms}
        return json.dumps({"parameters": parameters, "counts": counts, "test": self._test.snapshot()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote."""
        try:
            state = json.loads(text)
            made = cls(**state["parameters"])
            made.n_rows, made.n_alarms = state["counts"]["n_rows"], state["counts"]["n_alarms"]
            made._test = type(made._test).from_snapshot(state["test"])
        except (KeyError, TypeError, ValueError) as error:
            said = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(
                f"The text is not a saved OnlineAlarms ({said}); give what to_json() returned."
            ) from error
        return made

    def _new_test(self) -> Any:
        try:
            from online_fdr.p_values import BatchPRDS, Lond
        except ImportError as error:
            raise ImportError("Online alarms need online-fdr: pip install 'rankad[online]'.") from error
        if self.method == "batch":
            return BatchPRDS(self.q)
        # The largest number of alarms and one, not their sum: what is proven for positive dependence.
        return Lond(self.q, original=False, dependent=self.method == "lond-dependent")
