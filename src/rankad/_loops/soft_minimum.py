"""The compiled loop of `rankad.scorers.fusion`."""

from __future__ import annotations

import math

import numpy as np

from rankad._loops.cache import compiled

# Below all numbers that a part may have.
_LEAST = -1e300


@compiled
def soft_minimum(parts, centers, spreads, reach, fused):  # type: ignore[no-untyped-def]
    """Fill in ``-log mean exp(-z)`` over the parts of every row, each as ``z = (part - center) / spread``.

    Below ``-reach``, z goes on as a logarithm. NaN where a part is NaN. `parts` are of shape (p, n).
    """
    n_parts, n = parts.shape
    z = np.empty(n_parts)
    for row in range(n):
        least, bad = math.inf, 0.0
        for part in range(n_parts):
            value = parts[part, row]
            if math.isnan(value):
                bad = math.nan
            z[part] = (value - centers[part]) / spreads[part]
            if z[part] < -reach:
                z[part] = -reach - math.log1p(-max(z[part], _LEAST) - reach)
            least = min(least, z[part])
        total = 0.0
        for part in range(n_parts):
            total += math.exp(least - z[part])
        fused[row] = least - math.log(total / n_parts) + bad
