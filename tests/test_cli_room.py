"""Room for a run: limits on memory are refused at once, in one line, and no depth of calls is slow."""

import subprocess
import sys

import pytest

from cli_cases import ENVIRONMENT

resource = pytest.importorskip("resource")

LIMITED = """
import resource
resource.setrlimit(resource.{name}, ({n_bytes}, {n_bytes}))
from rankad.cli import main
main()
"""

# At each depth, a loop of calls; how many pages the kernel had to give, at the worst depth.
NESTED = """
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


def ran(name, n_bytes, *arguments):
    code = LIMITED.format(name=name, n_bytes=n_bytes)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=20,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
@pytest.mark.parametrize(("name", "option"), [("RLIMIT_AS", "ulimit -v"), ("RLIMIT_DATA", "ulimit -d")])
@pytest.mark.parametrize("command", ["score", "fit", "inspect"])
def test_too_little_memory_is_refused_at_once(name, option, command, tmp_path):
    given = ["t.csv", *([] if command == "inspect" else ["--model", "m.rankad"])]
    done = ran(name, 400_000_000, command, *given)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rankad: this process is limited to 381 MiB")
    assert option in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
def test_help_needs_no_room():
    assert ran("RLIMIT_AS", 400_000_000, "--version").returncode == 0


def test_signals_are_heard_before_anything_large_is_imported():
    code = (
        "import sys; import rankad.cli; print([name for name in ('numpy', 'polars') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout == "[]\n"


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 14),
    reason="pages are counted as Linux counts them, and Python 3.14 keeps a block that is empty",
)
def test_no_depth_of_calls_is_slow():
    done = subprocess.run(
        [sys.executable, "-c", NESTED], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    without, with_room = map(int, done.stdout.split())
    assert without >= 1_000, "the test must see what is mended"
    assert with_room < 100
