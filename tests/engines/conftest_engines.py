"""Engines that may be missing: a reason to skip, but not in CI, where the dev extra has them."""

import importlib.util
import os
import shutil

import pytest


def need(module, extra, program=None):
    """Skip the calling test module, or fail in CI, where something that it needs is missing."""
    reason = None
    if importlib.util.find_spec(module) is None:
        reason = f"{module} is not installed: pip install 'rankad[{extra}]'"
    elif program is not None and shutil.which(program) is None and not os.environ.get("JAVA_HOME"):
        reason = (
            f"{program} is not installed; Spark needs Java 17 or 21: apt-get install openjdk-17-jre-headless"
        )
    if reason is None:
        return
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
