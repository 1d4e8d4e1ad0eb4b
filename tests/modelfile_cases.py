"""Rows, tables, fitted detectors and forged files that the tests of model files share."""

import hashlib
import json
import struct
from dataclasses import replace

import numpy as np
import polars

from rankad import RankAD, TableDetector
from rankad.scorers.nearfield import NearField

_UNITS = np.array([1.0, 30.0, 0.01])


def nominal():
    """120 rows of three columns in different units."""
    return np.random.default_rng(3).normal(size=(120, 3)) * _UNITS


def others():
    """Rows among the nominal ones, at their edge, and as far as numbers go."""
    near = np.random.default_rng(4).normal(size=(200, 3)) * _UNITS
    return np.vstack([near, 3 * near, 1e3 * near, np.full((1, 3), 1e300), np.full((1, 3), -1e30)])


def fitted():
    """A detector with selection and a mixture, and without a near field, so that rows can be left out."""
    return RankAD(
        landmarks=15, bandwidth=["D_K", "2 D_K"], C=0.1, scaling="auto", near_field=False, random_state=0
    ).fit(nominal())


def fitted_with_near_field():
    """A detector of all parts, whose near field is of more rows than trained it."""
    detector = RankAD(landmarks=15, random_state=0).fit(nominal())
    near = NearField.of(np.vstack([nominal(), others()[:200]]), _UNITS)
    detector.model_ = replace(detector.model_, scorer=replace(detector.scorer_, near=near))
    return detector


def table(n=80, seed=11):
    """A mixed table with missing numbers."""
    rng = np.random.default_rng(seed)
    size = [None if rng.random() < 0.1 else float(value) for value in rng.normal(size=n)]
    color = rng.choice(["red", "blue", "blue", "<b>"], size=n)
    return polars.DataFrame(
        {"id": [f"row {at}" for at in range(n)], "size": size, "color": color, "on": rng.random(n) < 0.5}
    )


def new_table():
    """Another, with cells such as the first has none."""
    more = {"id": ["a", "b"], "size": [None, float("inf")], "color": ["green", "red"], "on": [None, True]}
    return polars.concat([table(seed=12), polars.DataFrame(more)])


def fitted_on_table():
    """A TableDetector."""
    inner = RankAD(landmarks=15, scaling="standard", bandwidth="D_K", C=0.1, random_state=0)
    return TableDetector(inner, ids=["id"], min_count=3).fit(table())


# ---------------------------------------------------------------------------------------------------- forging


def taken_apart(data):
    """Return safetensors' own header and the bytes behind it, by the format's definition."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def put_together(outer, body):
    """Return a file of that header and those bytes."""
    text = json.dumps(outer).encode()
    return struct.pack("<Q", len(text)) + text + body


def signed(outer, body, text):
    """Return a file with that text for rankad's header, and its digest."""
    metadata = {"rankad": text, "rankad_sha256": hashlib.sha256(text.encode()).hexdigest()}
    return put_together({**outer, "__metadata__": metadata}, body)


def with_header(data, edit):
    """Edit rankad's header and sign it again."""
    outer, body = taken_apart(data)
    header = json.loads(outer["__metadata__"]["rankad"])
    edited = edit(header)
    return signed(outer, body, json.dumps(header if edited is None else edited))


# What a forger might write in place of a value.
STRANGE = (
    None,
    True,
    -1,
    0,
    7,
    2**62,
    2**200,
    1e308,
    -0.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 99,
    [],
    {},
    [[]],
)


def change_somewhere(header, rng, strange=STRANGE):
    """Replace, change or drop a value at a random place of a JSON value."""
    new = strange[rng.integers(len(strange))]
    here, path = header, []
    while isinstance(here, dict | list) and len(here) and (rng.random() < 0.8 or not path):
        keys = list(here) if isinstance(here, dict) else range(len(here))
        path.append((here, keys[int(rng.integers(len(keys)))]))
        here = here[path[-1][1]]
    holder, key = path[-1]
    if rng.random() < 0.3:
        del holder[key]
    elif isinstance(here, float) and rng.random() < 0.5:
        holder[key] = here * float(np.exp(rng.normal()))
    elif isinstance(here, int) and rng.random() < 0.5:
        holder[key] = here + int(rng.integers(-3, 4))
    else:
        holder[key] = new
