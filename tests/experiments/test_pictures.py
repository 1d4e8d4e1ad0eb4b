"""Pictures: written whole, and colours that stay apart."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from PIL import Image

from rankad.experiments.pictures import COLOURS, new_figure, percent, save, tint


def test_a_picture_is_a_png_of_its_size(tmp_path):
    path = save(new_figure("A title", (3.0, 2.0)), tmp_path / "new" / "picture.png")
    assert imread(path).shape[:2] == (200, 300)
    with Image.open(path) as image:
        assert image.mode == "P"
    assert [file.name for file in path.parent.iterdir()] == ["picture.png"]


def test_rates_as_people_read_them():
    assert [percent(rate) for rate in (0.05, 0.1, 1.0)] == ["5 %", "10 %", "100 %"]


def test_colours_stay_apart_in_grey_and_pale():
    weights = [0.2126, 0.7152, 0.0722]
    shades = sorted(float(np.dot(weights, to_rgb(colour))) for colour in COLOURS)
    assert min(np.diff(shades)) > 0.03
    for colour in COLOURS:
        assert min(tint(colour)) >= 0.66
        assert tint(colour) != to_rgb(colour)
