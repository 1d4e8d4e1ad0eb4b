"""What is measured: sizes, seeds, limits."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["THREADS", "Bench", "Sizes"]

# Every comparison is made with two threads allowed, and with one.
THREADS = (2, 1)


class Sizes(NamedTuple):
    """How much of everything.

    Attributes
    ----------
    base, hundred, many, million : int
        Training rows: where methods are compared, and what the bars call 2,000, 100,000, 200,000 and a
        million rows. Of a quick look, fewer.
    fits : tuple of int
        The training rows of the curves, ascending; the four above are among them.
    scored : int
        Rows scored for rows/s.
    single : int
        Calls with one row.
    published : int
        Training rows of ``RankAD.as_published()``.
    landmarks : tuple of int
    draws : int
        Draws of training rows that the landmarks' curve and the near field's figures average over.
    large_sets : tuple of str
        Data sets on which fits with and without a near field are compared. A quick look takes as many rows of
        them as a whole run: fewer would have no near field.
    columns, landmark_counts : tuple of int
        d and s of the roofline.
    stream_bytes : int
    starts : int
        Fresh processes that a start-up time is the median of.
    fit_limit, stop : float
        A fit expected to take longer than `fit_limit` seconds is not tried, and one that takes longer than
        `stop` is ended.
    """

    base: int = 2_000
    hundred: int = 100_000
    many: int = 200_000
    million: int = 1_000_000
    fits: tuple[int, ...] = (2_000, 20_000, 100_000, 200_000, 1_000_000)
    scored: int = 100_000
    single: int = 500
    published: int = 2_000
    landmarks: tuple[int, ...] = (25, 50, 100, 250, 500, 1_000)
    draws: int = 3
    large_sets: tuple[str, ...] = ("cover", "http", "shuttle", "smtp")
    columns: tuple[int, ...] = (3, 10, 36)
    landmark_counts: tuple[int, ...] = (50, 200, 500, 2_000)
    stream_bytes: int = 10_000_000_000
    starts: int = 5
    fit_limit: float = 120.0
    stop: float = 300.0


_QUICK = Sizes(
    base=1_000,
    hundred=5_000,
    many=5_000,
    million=10_000,
    fits=(1_000, 5_000, 10_000),
    scored=20_000,
    single=100,
    published=200,
    landmarks=(25, 100, 250),
    draws=1,
    large_sets=("shuttle",),
    columns=(3, 10),
    landmark_counts=(50, 200),
    stream_bytes=200_000_000,
    starts=2,
    fit_limit=30.0,
    stop=40.0,
)


class Bench(NamedTuple):
    """One run.

    Attributes
    ----------
    out : Path
        The folder of the results. Finished cells are kept in a sub-folder until all are finished.
    rows : Path
        The folder of the rows that all methods share (see `rows.prepare`).
    quick : bool
        Whether to take a cheap look, with sizes that the bars are not about.
    """

    out: Path
    rows: Path
    quick: bool = False

    @property
    def sizes(self) -> Sizes:
        """How much of everything."""
        return _QUICK if self.quick else Sizes()

    @property
    def threads(self) -> tuple[int, ...]:
        """The settings measured: a quick look leaves out one thread."""
        return THREADS[:1] if self.quick else THREADS

    @property
    def cells(self) -> Path:
        """Where finished cells are kept."""
        return self.out / "bench-cells"
