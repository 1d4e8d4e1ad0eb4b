"""A fitted detector as workers get it, and blocks scored by it."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rankad.detectors.base import CalibratedDetector
from rankad.detectors.table import TableDetector
from rankad.engines.partitions import Block, Layout
from rankad.scoring.batch import ANSWERS, score_batch
from rankad.scoring.loading import for_table

# The detector that this process scores with, by its key.
_held: dict[str, CalibratedDetector] = {}


class SharedDetector:
    """A fitted detector that is unpickled once in each process, however many tasks that runs.

    Parameters
    ----------
    detector : RankAD, TableDetector or other detector of this package
        One that was fitted on named columns scores columns by their names. ``shared.detector`` is the same
        object for all tasks of a process.
    """

    def __init__(self, detector: CalibratedDetector) -> None:
        if not isinstance(detector, TableDetector) and hasattr(detector, "feature_names_in_"):
            detector = for_table(detector, [])
        self._key, self.detector = uuid.uuid4().hex, detector

    def __getstate__(self) -> tuple[str, bytes]:
        return self._key, pickle.dumps(self.detector, protocol=5)

    def __setstate__(self, state: tuple[str, bytes]) -> None:
        self._key, payload = state
        if self._key not in _held:
            _held.clear()
            _held[self._key] = pickle.loads(payload)
        self.detector = _held[self._key]

    def answers(self, block: Block, layout: Layout) -> dict[str, Any]:
        """Return p_value, score and alarm of the rows of a block, as arrays."""
        detector = self.detector
        if len(block) == 0:
            return {"p_value": np.empty(0), "score": np.empty(0), "alarm": np.empty(0, dtype=bool)}
        if not isinstance(detector, TableDetector):
            return dict(score_batch(detector, layout.rows(block)))
        names = detector.feature_names_in_.tolist()
        absent = [name for name in names if name not in block.schema.names]
        if absent:
            raise ValueError(
                f"the table lacks {', '.join(map(repr, absent))}, which the detector was fitted with; it has "
                f"{', '.join(map(repr, block.schema.names))}. Add what is missing, or fit without it."
            )
        answers = score_batch(detector, block.select(names))
        return {name: answers.column(name).to_numpy(zero_copy_only=False) for name in ANSWERS}


def score_blocks(
    shared: SharedDetector, blocks: Iterator[pa.RecordBatch], layout: Layout, names: tuple[str, ...] = ANSWERS
) -> Iterator[pa.RecordBatch]:
    """Return record batches with p_value, score and alarm as further columns, of these names."""
    for block in blocks:
        answers = shared.answers(block, layout)
        for name, answer in zip(names, ANSWERS, strict=True):
            block = block.append_column(name, pa.array(answers[answer]))
        yield block
