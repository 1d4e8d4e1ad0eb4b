"""``rankad inspect``: what a model file says of its model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rankad._base.wording import cell, count, counted, printable
from rankad.cli import options as opt
from rankad.cli.console import console, facts_table, plain_table
from rankad.cli.messages import confidence, percent, size, to_json

if TYPE_CHECKING:
    from rankad.modelfile import ModelCard
    from rankad.stages.calibration import FalseAlarmBound


_LEVELS = (0.1, 0.05, 0.01)
_CALIBRATIONS = {
    "cross-fit": "each scored by a model that had not seen it",
    "split": "none of which the model had seen",
    "leave-one-out": "each compared with all the others",
    "in-sample": "the very rows it learned from",
}


def inspect(
    model: Path = typer.Argument(metavar="MODEL", help="The model file."), as_json: bool = opt.AS_JSON
) -> None:
    """Show what a model is and what it promises.

    What it was learned from, what becomes of each column, how many false alarms there will be. The file is
    checked as a whole: what is shown is what was saved.
    """
    import rankad
    from rankad.modelfile import read_card
    from rankad.scoring.loading import check_there

    check_there(model)
    card, detector = read_card(model), rankad.load(model)
    levels = sorted({*_LEVELS, card.alpha}, reverse=True)
    bounds = [detector.false_alarm_bound(level) for level in levels]
    if as_json:
        typer.echo(to_json(asdict(card) | {"saved": card.saved.isoformat(), "promises": bounds}))
    else:
        _print(model, card, bounds)


def _print(model: Path, card: ModelCard, bounds: list[FalseAlarmBound]) -> None:
    out, learned = console(), counted(card.n_rows, "row")
    if card.n_trimmed:
        how = "kept from training" if card.parameters["trim"] == "auto" else "left out"
        learned += f", {count(card.n_trimmed)} of them {how} as suspects"
    inner = "" if card.detector in (card.kind, "RankAD") else f" of {card.detector}"
    calibration = f"{_CALIBRATIONS[card.calibration]} ({card.calibration})"
    explains = "yes" if card.holds_rows else "no: it was saved without rows"
    facts = {
        "kind": f"{card.kind}{inner}, saved {card.saved:%Y-%m-%d %H:%M} UTC, {size(card.n_bytes)}",
        "learned from": learned,
        "compares with": f"{counted(card.n_calibrating, 'row')}, {calibration}",
        "scores by": _scores_by(card),
        "explains": explains if card.detector == "RankAD" else f"no: {card.detector} gives no reasons",
    }
    out.print(str(model), style="bold")
    out.print(facts_table(facts.items()), "")
    promises = plain_table("false alarms asked for", "at most", "")
    for bound in bounds:
        default = " (the model's default)" if bound.alpha == card.alpha else ""
        most = percent(bound.bound) if bound.bound > 0 else "no alarm possible"
        sure = f"with {confidence(bound)}" if bound.bound else ""
        promises.add_row(percent(bound.alpha) + default, most, sure)
    out.print(promises, "")
    _print_columns(card)
    details = [("parameters", changed)] if (changed := _changed(card)) else []
    details += [
        ("versions", ", ".join(f"{name} {version}" for name, version in card.versions.items())),
        ("rows sha256", card.training_sha256),
        ("model sha256", card.sha256),
    ]
    out.print(facts_table(details + [("note", note) for note in card.notes]))


def _scores_by(card: ModelCard) -> str:
    scaling = f"{card.scaling or 'no further'} scaling"
    if card.radius is not None:
        return f"how many of {counted(card.n_training, 'row')} are within {card.radius:.3g}, {scaling}"
    if card.bandwidth is None:
        return f"the {count(card.n_neighbors or 0)} nearest of {counted(card.n_training, 'row')}, {scaling}"
    chosen = f" (best of {count(len(card.selection.C))} settings)" if card.selection is not None else ""
    near = f"; the nearest of {counted(card.n_near, 'row')}" if card.n_near else ""
    mixture = f"; a mixture of {count(card.n_gaussians)} Gaussians" if card.n_gaussians else ""
    kernel = f"{count(card.n_landmarks)} landmarks, {scaling}, kernel width {card.bandwidth:.3g}{chosen}"
    return f"{kernel}{near}{mixture}"


def _print_columns(card: ModelCard) -> None:
    out = console()
    if not card.encoding:
        names = ", ".join(map(cell, card.columns)) or "without names"
        out.print(f"  {card.n_columns} columns of numbers: {names}\n")
        return
    table = plain_table("column", "becomes")
    for at, line in enumerate(card.encoding):
        # A name may contain a colon; for ids and dropped columns there is only the line.
        name = card.columns[at] if at < len(card.columns) else line.rpartition(": ")[0]
        table.add_row(cell(name), printable(line.removeprefix(f"{name}: ")))
    out.print(table, "")


def _changed(card: ModelCard) -> str:
    """Return the parameters that differ from the defaults."""
    import rankad

    defaults = getattr(rankad, card.detector)().get_params()
    changed = {name: value for name, value in card.parameters.items() if value != defaults.get(name)}
    return ", ".join(f"{name}={value!r}" for name, value in changed.items())
