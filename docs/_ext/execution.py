"""Where the code of pages and examples runs: the rankad of this tree, plain output, the same every time."""

import os
import shutil
import sys
from pathlib import Path

KERNEL = '''\
"""Written by docs/_ext/execution.py: what every page's kernel starts with."""

import os
import subprocess
import sys

from IPython.core.magic import register_cell_magic


@register_cell_magic
def shell(line, cell):
    """Run the cell in bash and print what it prints; `%%shell 3` accepts exit status 3 alone."""
    expected = int(line or 0)
    os.environ.pop("FORCE_COLOR", None)  # kernels set it; output goes to a page, not to a terminal
    ended = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", cell],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    sys.stdout.write(ended.stdout)
    if ended.returncode != expected:
        sys.stdout.flush()
        raise RuntimeError(f"the commands ended with status {ended.returncode}, not {expected}")
'''

CONFIG = """\
# Written by docs/_ext/execution.py.
c = get_config()
c.InlineBackend.figure_formats = {"retina"}
c.HistoryManager.enabled = False
# From the start: left to the first figure, one drawn inside plt.rc_context would be the last one shown.
c.IPKernelApp.matplotlib = "inline"
c.IPKernelApp.log_level = "ERROR"
"""


def prepare_execution(root: Path, cache: Path, sources: str, generated: list[Path]) -> None:
    """Set the environment that kernels, shell cells and examples inherit; forget what older sources made."""
    _forget_older(cache, sources, generated)
    profile = cache / "ipython" / "profile_default"
    (profile / "startup").mkdir(parents=True, exist_ok=True)
    (profile / "startup" / "00-shell.py").write_text(KERNEL, encoding="utf-8")
    (profile / "ipython_kernel_config.py").write_text(CONFIG, encoding="utf-8")
    programs = cache / "bin"
    programs.mkdir(exist_ok=True)
    for name, module in {"python": "", "rankad": " -m rankad"}.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    os.environ |= {
        "IPYTHONDIR": str(cache / "ipython"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")])),
        "COLUMNS": "92",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _forget_older(cache: Path, sources: str, generated: list[Path]) -> None:
    mark = cache / "sources"
    if not mark.exists() or mark.read_text() != sources:
        for folder in [*cache.glob("pages-*"), *generated]:
            shutil.rmtree(folder, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        mark.write_text(sources)
