"""What all pictures share: colours, how rates are written, and how a picture becomes a file."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from rankad.experiments.cells import write_atomically

__all__ = ["COLOURS", "new_figure", "percent", "save", "tint"]

# Apart from one another for the colour-blind too; from outer to inner level curves, where these are drawn.
COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00", "#7b2d8b")
_DPI = 130


def new_figure(title: str, size: tuple[float, float], gap: float = 0.12) -> Figure:
    """Return an empty figure under one title, its parts laid out so that nothing overlaps.

    Parameters
    ----------
    title : str
    size : tuple of float
        Width and height in inches.
    gap : float
        Around every part, in inches.
    """
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=gap))
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12.5, fontweight="bold")
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG, whole or not at all."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DPI)
    write_atomically(path, content.getvalue())
    return path


def percent(rate: float) -> str:
    """Return a rate as people read it.

    Examples
    --------
    >>> percent(0.05)
    '5 %'
    """
    return f"{100 * rate:.0f} %"


def tint(colour: str) -> tuple[float, float, float]:
    """Return a colour's pale shade, for areas."""
    red, green, blue = (0.66 + 0.34 * part for part in to_rgb(colour))
    return red, green, blue
