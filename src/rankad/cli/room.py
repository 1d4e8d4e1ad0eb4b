"""Check the memory limits of the process against what the libraries need before any row is read."""

from __future__ import annotations

_MIB = 1 << 20
# Measured on two cores: they map 2.0 GB of addresses and write to 0.5 GB. With less they give no clear error
# but abort, or wait forever for a thread that could not be started.
_LEAST = {"RLIMIT_AS": ("addresses", "-v", 2048 * _MIB), "RLIMIT_DATA": ("data", "-d", 640 * _MIB)}


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
