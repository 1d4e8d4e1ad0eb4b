"""The models that are served: loaded once, replaced when their file changes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rankad.detectors.base import CalibratedDetector
from rankad.modelfile import ModelCard, load, read_card
from rankad.service.errors import RequestError

# In the place of the stamp of a file that is not there.
_GONE = (0, 0, 0)


class ServedModel(NamedTuple):
    """A fitted detector and where it comes from."""

    name: str
    path: Path
    detector: CalibratedDetector
    card: ModelCard
    stamp: tuple[int, int, int]

    def describe(self) -> dict[str, Any]:
        """Return what a client may want to know, ready for JSON."""
        card = self.card
        return {
            "name": self.name,
            "kind": card.kind,
            "alpha": card.alpha,
            "columns": list(card.columns),
            "n_columns": len(card.columns) or card.n_columns,
            "encoding": [line.replace("nominal", "normal") for line in card.encoding],
            "normal_rows": card.n_rows,
            "calibrating_rows": card.n_calibrating,
            "calibration": card.calibration,
            "explains": card.detector == "RankAD" and card.holds_rows,
            "saved": card.saved.isoformat(),
            "sha256": card.sha256,
            "versions": dict(card.versions),
        }


class ModelStore:
    """Models by name. A request keeps the model it began with while another takes its place.

    Parameters
    ----------
    paths : iterable of path
        Model files; a model is called like its file, without the suffix.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._models: dict[str, ServedModel] = {}
        self._failed: dict[str, tuple[int, int, int]] = {}
        for path in paths:
            name = path.stem
            if name in self._models:
                other = self._models[name].path
                if path.samefile(other):
                    raise ValueError(f"the model {path} is named twice; name it once.")
                raise ValueError(
                    f"two models are called {name!r}: {other} and {path}; rename one of the files."
                )
            self._models[name] = _load(name, path)

    def __iter__(self) -> Any:
        return iter(self._models.values())

    def get(self, name: str) -> ServedModel:
        """Return a model, or raise a `RequestError` that lists those there are."""
        model = self._models.get(name)
        if model is None:
            known = ", ".join(sorted(self._models)[:20])
            raise RequestError(404, "unknown_model", f"there is no model {name[:100]!r}; there are: {known}")
        return model

    def refresh(self, *, again: bool = False) -> list[tuple[str, str | None]]:
        """Load the files that have changed; a file that cannot be loaded leaves the old model in place.

        Parameters
        ----------
        again : bool
            Whether to try files again that could not be loaded, and to report again files that are gone.

        Returns
        -------
        list of (str, str or None)
            The name of each model whose file has changed, and what was wrong with it, if anything.
        """
        changes: list[tuple[str, str | None]] = []
        for name, model in list(self._models.items()):
            try:
                stamp = _stamp(model.path)
            except OSError as error:
                # Told once, or whenever somebody asks.
                if again or self._failed.get(name) != _GONE:
                    changes.append((name, str(error)))
                self._failed[name] = _GONE
                continue
            if stamp == model.stamp:
                self._failed.pop(name, None)
                continue
            if not again and stamp == self._failed.get(name):
                continue
            try:
                self._models[name] = _load(name, model.path)
                self._failed.pop(name, None)
                changes.append((name, None))
            except Exception as error:
                # Whatever is wrong with it, the old one serves. Not tried again until the file changes again.
                self._failed[name] = stamp
                changes.append((name, str(error)))
        return changes


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _load(name: str, path: Path) -> ServedModel:
    # The stamp comes first: a file that changes meanwhile is loaded once more.
    stamp = _stamp(path)
    detector: Any = load(path)
    # Requests are what runs in parallel here.
    getattr(detector, "detector_", detector).n_jobs = 1
    return ServedModel(name, path, detector, read_card(path), stamp)
