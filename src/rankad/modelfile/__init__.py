"""A fitted detector in one file, without pickle and without code.

The file is in the safetensors format: arrays, and a header of JSON. When it is read it is checked as if
anybody had written it; what is loaded answers to the last bit as what was saved.

    detector.save("model.rankad")
    rankad.load("model.rankad").p_values(rows)
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rankad._base.files import replacing
from rankad._base.garbage import no_collection
from rankad.modelfile.card import (
    KINDS,
    ModelCard,
    card_from,
    check_schema,
    detector_kind,
    encoder_from,
    provenance,
)
from rankad.modelfile.container import pack, unpack
from rankad.modelfile.fields import Arrays, Fields, Flaw, require
from rankad.modelfile.fitted import DETECTORS, detector_from, parts_of
from rankad.modelfile.schema import SCHEMA

if TYPE_CHECKING:
    from rankad.detectors.base import CalibratedDetector
    from rankad.detectors.lpe import KLPE, EpsilonLPE
    from rankad.detectors.rank import RankAD
    from rankad.detectors.table import TableDetector

__all__ = ["ModelCard", "ModelFileError", "load", "read_card", "save"]

_LONGEST_REASON = 300


class ModelFileError(ValueError):
    """A file that cannot be read as a model: altered, cut short, of a newer rankad, or something else.

    Attributes
    ----------
    path : str
        The file.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".rankad") as file:
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError as error:
    ...         print(error.reason)
    it is cut short, damaged, or something else than detector.save and rankad fit write (...)
    """

    def __init__(self, path: str, reason: str) -> None:
        # Both are arguments, so that the error can be pickled.
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path} cannot be read as a rankad model: {self.reason}."


def save(
    detector: RankAD | KLPE | EpsilonLPE | TableDetector, path: str | os.PathLike[str], *, rows: bool = True
) -> None:
    """Save a fitted detector to one file.

    The file is written under another name and renamed when it is safe on the disk and has been read back: a
    file of that name is replaced by a whole one or not at all.

    Parameters
    ----------
    detector : RankAD, KLPE, EpsilonLPE or TableDetector
        Fitted.
    path : str or path
        Where to; any name will do, as "model.rankad".
    rows : bool
        Whether to save the training rows too. They are needed for explanations only; the landmarks, which are
        needed in any case, are means of such rows (with ``landmarks="all"`` or "random", rows themselves). A
        near field, `KLPE` and `EpsilonLPE` score by rows, and cannot be saved without.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from rankad import RankAD, load
    >>> rng = np.random.default_rng(0)
    >>> detector = RankAD(bandwidth="D_K", C=0.1, random_state=0).fit(rng.normal(size=(100, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(detector, os.path.join(folder, "model.rankad"))
    ...     again = load(os.path.join(folder, "model.rankad"))
    >>> bool(again.score_samples([[1.0, 2.0]]) == detector.score_samples([[1.0, 2.0]]))
    True
    """
    if not isinstance(rows, bool):
        raise ValueError(f"rows must be True or False, got {rows!r}.")
    kind, table, inner = _taken_apart(detector)
    stored, arrays = parts_of(inner, rows=rows)
    header = {"schema": SCHEMA, "kind": kind, "origin": provenance(), "table": table, **stored}
    with replacing(path) as out:
        out.file.write(pack(header, arrays))
        out.sync()
        try:
            load(out.path)
        except ModelFileError as error:
            reason = f"it was not saved, because it could not be loaded again: {error.reason}"
            raise ModelFileError(os.fsdecode(path), reason) from error


def _taken_apart(detector: Any) -> tuple[str, dict[str, Any] | None, RankAD | KLPE | EpsilonLPE]:
    """Return the kind of a fitted detector, what it says of tables, and the detector of rows inside."""
    kind, table, inner = type(detector).__name__, None, detector
    if kind == "TableDetector":
        detector._check_fitted()
        table = {"min_count": int(detector.min_count), "encoder": detector.encoder_.to_dict()}
        inner = detector.detector_
    if type(inner) not in DETECTORS.values():
        # A class derived from them may answer otherwise, and loading would not bring that back.
        held = f"a {kind} that holds {type(inner).__name__}" if inner is not detector else f"{kind}"
        raise TypeError(
            f"save takes a fitted RankAD, KLPE or EpsilonLPE, or a fitted TableDetector that holds one; got "
            f"{held}."
        )
    inner._check_fitted()
    return kind, table, inner


def load(path: str | os.PathLike[str]) -> RankAD | KLPE | EpsilonLPE | TableDetector:
    """Load a detector that was saved.

    Nothing in the file is run. Its digests are checked, and every value; and a few test rows must score as
    they did when it was saved (within a millionth: another processor may round otherwise).

    Parameters
    ----------
    path : str or path

    Returns
    -------
    RankAD, KLPE, EpsilonLPE or TableDetector
        As it was saved. Parameters that were sequences are tuples; a ``random_state`` that was no integer is
        None. Where it was saved with ``rows=False``, there is no ``nominal_rows_``.

    Raises
    ------
    ModelFileError
        If the file is not a whole and unaltered model that this version of rankad can read.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rankad import KLPE
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     KLPE().fit(np.arange(19.0)[:, None]).save(f"{folder}/model.rankad")
    ...     load(f"{folder}/model.rankad").n_neighbors_
    3
    """
    # The first load imports numba, which makes very many objects that stay.
    with no_collection(), _named(path) as name:
        contents = unpack(name, lambda array: True)
        header, arrays = contents.header, Arrays(contents.arrays)
        check_schema(header)
        kind = header.text("kind", KINDS)
        card_from(contents)
        fitted = header.fields("fitted")
        inner = detector_from(detector_kind(header), header.fields("parameters"), fitted, arrays)
        arrays.done()
        if kind != "TableDetector":
            return inner
        return _table_from(header.fields("table"), inner, fitted.count("n_rows"))


def _table_from(table: Fields, detector: CalibratedDetector, n_rows: int) -> TableDetector:
    """Return a TableDetector of its parts, or raise a `Flaw`."""
    from rankad.detectors.table import TableDetector
    from rankad.io.forks import check_polars

    check_polars()
    encoder = encoder_from(table)
    require(
        encoder.n_rows == n_rows,
        f"its encoder was fitted on {encoder.n_rows:,} rows and its detector on {n_rows:,}",
    )
    min_count = table.count("min_count", 1)
    try:
        return TableDetector.of_parts(encoder, detector, min_count)
    except ValueError as error:
        raise Flaw(f"its encoder and its detector do not match: {error}") from error


def read_card(path: str | os.PathLike[str]) -> ModelCard:
    """Read what a model file says of its model, without loading the model.

    Most arrays are not read, so that `load` may still refuse the file.
    """
    with _named(path) as name:
        contents = unpack(name, lambda array: array.startswith("selection."))
        check_schema(contents.header)
        return card_from(contents)


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[str]:
    """Turn flaws into errors that name the file."""
    name = os.fsdecode(path)
    try:
        yield name
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no model file {name}; detector.save(path) and rankad fit make one"
        ) from None
    except Flaw as flaw:
        # In one line, whatever texts of the file it quotes.
        reason = textwrap.shorten(str(flaw).rstrip("."), _LONGEST_REASON, placeholder=" [...]")
        raise ModelFileError(name, reason) from flaw
