"""How many rows, folds and made-up rows a fit takes."""

from __future__ import annotations

# Fewer different rows than this are too few to fit on.
LEAST_ROWS = 8
# Training takes at most this many rows, drawn at random; the others calibrate.
MAX_TRAINING_ROWS = 5_000
# Where there are this many times as many other rows, half of those at most serve as reference: training rows
# are ranked by their neighbours among them, or among so many that take no more multiplications than this.
ENOUGH_FOR_REFERENCE = 2
RANKING_ROWS, RANKING_WORK = 10_000, 1e9
# The near field is made of them all: so many rows and numbers at most. The mixture is made of so many.
NEAR_ROWS, NEAR_NUMBERS = 100_000, 4_000_000
MIXTURE_ROWS = 20_000
# Folds of the cross-fitted calibration: models of 39 rows in 40 are near enough to the final one. A mixture
# of many rows takes longer to make than it changes with a row. For the units of parts alone, a few will do.
CALIBRATION_FOLDS, MIXTURE_FOLDS, UNIT_FOLDS = 40, 20, 5
MIXTURE_OF_MANY = 1_000
# Neighbours that random halves are ranked by, and those known of all rows, from which folds take theirs: in
# multiples of K.
HALVES_NEIGHBORS, KNOWN_NEIGHBORS = 4, 6
# Selection takes more folds of fewer rows than this.
SELECTION_OF_FEW = 1_000
# What C="auto" is, over the number of training rows.
AUTO_C = 10.0
# Made-up rows of each kind per held-out row, and how many at most.
NEGATIVES, MOST_NEGATIVES = 20, 10_000
# Of very many columns, made-up rows hold so many numbers in all, or are so few.
VERY_WIDE, NARROW_NUMBERS, LEAST_NEGATIVES = 1_000, 2**23, 100


def n_ranking(n_reference: int, size: int) -> int:
    """Return how many of the reference rows are to rank the training rows, which hold so many numbers."""
    return min(n_reference, RANKING_ROWS, int(RANKING_WORK / size))
