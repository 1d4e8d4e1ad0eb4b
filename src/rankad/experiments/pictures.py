"""What all pictures share: colours, how rates are written, and how pictures are saved."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from PIL import Image

from rankad.experiments.cells import write_atomically

# Distinguishable for the colour-blind too; level curves use them from the outermost inwards.
COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00", "#7b2d8b")
_DPI = 100
# Enough for a diagram, and a quarter of the file size of true colour.
_PALETTE = 32


def new_figure(title: str, size: tuple[float, float], gap: float = 0.12) -> Figure:
    """Return an empty figure under one title, laid out so that nothing overlaps; size and gap in inches."""
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=gap))
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12.5, fontweight="bold")
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write a small PNG (a palette instead of true colour), whole or not at all."""
    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_DPI)
    with Image.open(drawn) as image:
        palette = image.convert("RGB").quantize(_PALETTE, dither=Image.Dither.NONE)
    palette.save(content, format="png", optimize=True)
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
