"""A callable class for Ray Data's ``map_batches``: one model for each actor. Needs the extra ``ray``."""

from __future__ import annotations

import os
from typing import Any

try:
    import pyarrow as pa
except ImportError as error:
    raise ImportError(f"{error}; run pip install 'rankad[ray]' to score with Ray") from error

from rankad.detectors.base import CalibratedDetector
from rankad.engines.partitions import Layout
from rankad.engines.scoring import SharedDetector, score_blocks
from rankad.modelfile import load
from rankad.scoring.batch import ANSWERS

__all__ = ["Scorer"]


class Scorer:
    """Adds p-values, scores and alarms to batches of a Ray dataset.

    Ray makes one in every actor, which loads the model once::

        dataset.map_batches(
            rankad.ray.Scorer, fn_constructor_args=("pump.rankad",), batch_format="pyarrow", concurrency=4
        )

    Parameters
    ----------
    model : str, path or fitted detector
        A model file that every actor can read, or the detector itself.
    alpha : float, optional
        The false-alarm rate; the model's own by default.
    names : tuple of str
        Of the columns of p-values, scores and alarms.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rankad import RankAD
    >>> normal = np.random.default_rng(0).normal(size=(300, 2))
    >>> scorer = Scorer(RankAD(alpha=0.05).fit(pd.DataFrame(normal, columns=["x", "y"])))
    >>> scorer(pa.table({"y": [0.0, 9.0], "x": [0.0, 9.0]})).column("alarm").to_pylist()
    [False, True]
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | CalibratedDetector,
        *,
        alpha: float | None = None,
        names: tuple[str, ...] = ANSWERS,
    ) -> None:
        detector = model if isinstance(model, CalibratedDetector) else load(model)
        if alpha is not None:
            detector.alpha = alpha
        self._shared, self._names = SharedDetector(detector), names

    def __call__(self, batch: Any) -> pa.Table:
        """Return a batch with three columns more.

        Parameters
        ----------
        batch : pyarrow Table, pandas DataFrame or dict of arrays
        """
        if not isinstance(batch, pa.Table):
            batch = pa.table(batch) if isinstance(batch, dict) else pa.Table.from_pandas(batch)
        layout = Layout(tuple(batch.column_names))
        blocks = score_blocks(self._shared, iter(batch.combine_chunks().to_batches()), layout, self._names)
        scored = list(blocks)
        return pa.Table.from_batches(scored) if scored else batch
