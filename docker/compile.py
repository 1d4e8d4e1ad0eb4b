"""Compile every loop that the service needs, for the image: run what `rankad demo` and `rankad find` run."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import rankad

with tempfile.TemporaryDirectory() as folder:
    demo = [Path(sys.executable).with_name("rankad"), "demo", "--out", folder]
    subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
    detector = rankad.load(Path(folder, "pump.rankad"))
    table = pl.read_csv(Path(folder, "new.csv"))
    detector.p_values(table[:1])
    find = [demo[0], "find", Path(folder, "new.csv"), "--id", "reading"]
    subprocess.run(find, check=True, stdout=subprocess.DEVNULL)

rows = np.random.default_rng(0).normal(size=(400, 3))
for detector in (rankad.RankAD(), rankad.KLPE(), rankad.EpsilonLPE()):
    detector.fit(rows).p_values(rows[:1])
    detector.p_values(rows)
