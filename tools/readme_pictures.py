"""Draw the README's two pictures, a report and level sets: ``python -m tools.readme_pictures docs``.

`make pictures` runs it. Needs the extra ``test`` and Chromium.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from rankad import LevelSetDisplay, RankAD
from rankad._base.arrays import Floats
from rankad.experiments.pictures import new_figure, save

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_COLOURS = 64
# Of the report: pixels, and the alarms to be seen.
_WIDTH, _MARGIN, _ALARMS = 1000, 16, 3


def report_picture(path: Path) -> None:
    """Photograph the first alarms in the report that `rankad demo` makes, as a browser shows it."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        sys.exit("No Chromium to photograph the report with; on Debian: make browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = [sys.executable, "-m", "rankad", "demo", "--out", folder]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        arguments = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=browser, headless=True, args=arguments)
        page = chromium.new_page(viewport={"width": _WIDTH, "height": 900}, color_scheme="light")
        page.goto(Path(folder, "report.html").as_uri())
        begin, end = page.locator("#alarms"), page.locator("#alarms .case").nth(_ALARMS - 1)
        top = begin.bounding_box()["y"] - _MARGIN
        bottom = end.bounding_box()["y"] + end.bounding_box()["height"] + _MARGIN / 2
        clip = {"x": 0, "y": top, "width": _WIDTH, "height": bottom - top}
        shot = page.screenshot(clip=clip, full_page=True)
        chromium.close()
    with Image.open(io.BytesIO(shot)) as image:
        image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(path, "png", optimize=True)


def level_set_rows(n_rows: int = 1_500, seed: int = 0) -> Floats:
    """Return rows in two columns that no ellipse describes: a crescent and a small dense cluster."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.15 * np.pi, 1.05 * np.pi, size=n_rows - n_rows // 4)
    crescent = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(2.0, 0.16, (len(angle), 1))
    cluster = rng.normal([0.35, 0.1], 0.16, size=(n_rows // 4, 2))
    return np.vstack([crescent, cluster])


def level_set_picture(path: Path) -> None:
    """Draw where rows raise no alarm at four rates, the rows learned from, and a few alarms."""
    rows = level_set_rows()
    detector = RankAD(alpha=0.01).fit(rows)
    anywhere = np.random.default_rng(1).uniform([-2.8, -0.7], [2.4, 2.6], size=(40, 2))
    alarms = anywhere[detector.predict(anywhere) == -1]
    figure = new_figure("Normal, at the rate of false alarms that you choose", (6.4, 4.6))
    axes = figure.add_subplot()
    LevelSetDisplay.from_estimator(detector, rows, alphas=(0.01, 0.05, 0.2, 0.5), ax=axes)
    axes.scatter(*alarms.T, marker="x", s=26, linewidth=1.2, color="#d55e00")
    axes.set_aspect("equal")
    save(figure, path)


def main(folder: str) -> None:
    """Draw both."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    level_set_picture(Path(folder, "readme-level-set.png"))
    report_picture(Path(folder, "readme-report.png"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder to draw into: python -m tools.readme_pictures docs")
    main(sys.argv[1])
