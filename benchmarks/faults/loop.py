"""``python -m benchmarks.faults.loop``: a command over and over again, so that it is killed while it works.

Arguments are commands as JSON lists, which take turns. Each that is finished prints a line.
"""

from __future__ import annotations

import json
import sys
from itertools import cycle

from benchmarks.faults.worker import quick_fits

__all__ = ["main"]


def main() -> None:
    """Run until killed."""
    from rankad.cli import main as command
    from rankad.io.table_files import open_table

    quick_fits()
    # Small batches: there is more to be killed in.
    assert open_table.__kwdefaults__ is not None
    open_table.__kwdefaults__["batch_bytes"] = 4_000
    for arguments in cycle([json.loads(one) for one in sys.argv[1:]]):
        try:
            command(arguments)
        except SystemExit as ended:
            if ended.code:
                sys.exit(f"{arguments} ended with status {ended.code}")
        print("done", flush=True)


if __name__ == "__main__":
    main()
