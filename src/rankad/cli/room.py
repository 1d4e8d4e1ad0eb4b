"""Room for a run: memory limits, checked before rows are read, and room for Python's frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_MIB = 1 << 20
# Measured on two cores: they map 2.0 GB of addresses and write to 0.5 GB. With less they give no clear error
# but abort, or wait forever for a thread that could not be started.
_LEAST = {"RLIMIT_AS": ("addresses", "-v", 2048 * _MIB), "RLIMIT_DATA": ("data", "-d", 640 * _MIB)}
# A frame of so many words is put into a block of 512 KiB, and half of that is left for what it calls.
_FRAME_WORDS = 33_000


def with_room_for_frames(call: Callable[[], T]) -> T:
    """Return ``call()``, with room for all frames of nested calls at once.

    Python keeps frames in blocks of 16 KiB. Before 3.14 it gives the last one back to the system as soon as
    it is empty: if a loop stands where a block ends, each of its calls asks for a block and gives it back.
    That took 0.3 of the 1.7 seconds of a short run.
    """
    return call()


# Most of the frame is never written to, and so takes no memory.
with_room_for_frames.__code__ = with_room_for_frames.__code__.replace(co_stacksize=_FRAME_WORDS)


def check_room() -> None:
    """Raise if a limit on the process is below what it needs."""
    try:
        import resource
    except ImportError:
        return
    for name, (what, option, least) in _LEAST.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        limit = resource.getrlimit(number)[0]
        if limit != resource.RLIM_INFINITY and limit < least:
            raise OSError(
                f"this process is limited to {limit // _MIB:,} MiB of {what} (ulimit {option}), and rankad "
                f"needs {least // _MIB:,} MiB or more; raise the limit, or use a container to limit memory."
            )
