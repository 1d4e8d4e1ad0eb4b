"""Room for the frames of nested calls: no loop pays for standing where a block of frames ends."""

import subprocess
import sys

import pytest

# At each depth, a loop of calls; how many pages the kernel had to give, at the worst depth.
CODE = """
import resource
from rankad.cli.room import with_room_for_frames

def leaf(a, b):
    return a

def loop():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for i in range(1_000):
        leaf(i, i)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def at(depth):
    return at(depth - 1) if depth else loop()

def worst():
    return max(at(depth) for depth in range(300))

worst()
print(worst(), with_room_for_frames(worst))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 14),
    reason="pages are counted as Linux counts them, and Python 3.14 keeps a block that is empty",
)
def test_no_depth_of_calls_is_slow():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    without, with_room = map(int, done.stdout.split())
    assert without >= 1_000, "the test must see what is mended"
    assert with_room < 100
