"""One run as files: ``quality.md`` for people, ``quality.json`` for programs; so for every study here."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quality.methods import WITHOUT_TORCH
from benchmarks.quality.sets import SetFile
from benchmarks.quality.settings import Study
from benchmarks.report import used_versions
from rankad.experiments.cells import plain, write_atomically
from rankad.experiments.results import Table

__all__ = ["QUALITY", "Page", "set_table", "write"]


class Page(NamedTuple):
    """What a study's page is called, and what a reader must know first.

    Attributes
    ----------
    name : str
        Of its files, and of the target of make that writes them.
    command : str
        That writes them without make.
    notes : tuple of str
        Said after what comes first.
    opening : str or None
        What comes first: which rows train and test. None: nominal rows train.
    made_by : str or None
        The command that writes them with make, where the target has another name.
    """

    name: str
    command: str
    notes: tuple[str, ...]
    opening: str | None = None
    made_by: str | None = None


_NOTES = (
    "Every detector has its library's defaults, but where said. Peers get columns standardized by the "
    "training rows' mean and standard deviation (1 where that is zero); RankAD gets the rows as they are. "
    "Where there is a seed, it is that of the split.",
    "k-NN 5 and k-NN 20: the mean distance to the 5 and 20 nearest training rows; k-NN 5 also on raw "
    "columns, on columns divided by their interquartile range, and on whitened ones, by a covariance with "
    "Ledoit and Wolf's shrinkage. LOF has novelty=True. GMM 10 is scikit-learn's GaussianMixture of ten, "
    "reg_covar=1e-3. By default GMM is one Gaussian, KDE has bandwidth 1, INNE looks at 8 rows at a time. "
    "PCA divides by each component's share of the variance, which is zero where columns are constant or "
    "collinear.",
    "ECOD and COPOD score a row by its rank among the training rows and all others scored with it, anomalies "
    "included.",
    *((f"{' and '.join(WITHOUT_TORCH)} need torch, which was not there: left out.",) * bool(WITHOUT_TORCH)),
)


QUALITY = Page("quality", "python -m benchmarks.quality", _NOTES)


def write(
    study: Study,
    page: Page,
    sets: Sequence[SetFile],
    tables: Sequence[Table],
    pictures: Sequence[Path],
    raw: Mapping[str, Any],
    seconds: float,
) -> None:
    """Write both files, each whole or not at all."""
    used = used_versions()
    content = {
        "quick": study.quick,
        "versions": used,
        "machine": {"system": platform.platform(), "processor": platform.machine()},
        "seconds": seconds,
        "seeds": list(study.seeds),
        "sizes": study.sizes._asdict(),
        "sets": [{**one._asdict(), "path": one.path.name} for one in sets],
        **raw,
        "tables": [table._asdict() for table in tables],
        "pictures": [path.name for path in pictures],
    }
    text = json.dumps(plain(content), indent=1, allow_nan=False)
    title = page.name.replace("_", " ").capitalize()
    parts = [f"# {title}", *_opening(study, page)]
    parts += [table.markdown() for table in tables]
    parts += [f"![{path.stem}]({path.name})" for path in pictures]
    made_with = ", ".join(f"{library} {number}" for library, number in used.items())
    command = f"{page.command} --quick" if study.quick else page.made_by or f"make {page.name}"
    parts += [f"Made by `{command}` with {made_with}."]
    write_atomically(study.out / f"{page.name}.json", text + "\n")
    write_atomically(study.out / f"{page.name}.md", "\n\n".join(parts) + "\n")


def _opening(study: Study, page: Page) -> list[str]:
    sizes, n_seeds = study.sizes, len(study.seeds)
    first = (
        f"Training rows: half of a set's nominal rows, {sizes.train:,} at most, drawn at random; no labels, "
        "and no anomalies but where said. Test rows: of the other nominal rows "
        f"{sizes.nominal:,} at most, and all anomalies. Figures are means over {n_seeds} such "
        f"split{'s' * (n_seeds > 1)}, the same for all detectors; where they are of more, it is said."
    )
    if page.opening is not None:
        first = page.opening.format(sizes=sizes, n_seeds=n_seeds)
    notes = [first, *page.notes]
    said = ["\n".join(f"- {note}" for note in notes)]
    if study.quick:
        said.insert(
            0,
            "**Quick look (--quick)**: the two smallest sets, one seed, few rows; not the figures to quote.",
        )
    return said


def set_table(sets: Sequence[SetFile]) -> Table:
    """Show the data sets."""
    rows = [
        [
            one.name,
            f"{one.n_rows:,}",
            f"{one.n_columns}",
            f"{one.n_anomalies:,}",
            f"{100 * one.n_anomalies / one.n_rows:.2f} %",
        ]
        for one in sets
    ]
    return Table("sets", "Data sets", ["set", "rows", "columns", "anomalies", "share"], rows)
