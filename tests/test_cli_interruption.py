"""Signals that end a run, also where Python drops what they raise."""

import signal
import subprocess
import sys

import pytest

from cli_cases import ENVIRONMENT

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer here")

# The command is replaced by some lines that get a signal at the worst moment.
RUN = """
import os, signal, sys, time
import rankad.cli

class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.{sent})
        time.sleep(0.01)

def clean_up():
    time.sleep(0.7)
    print("cleaned up", flush=True)

def work(**_):
{work}

rankad.cli._app = lambda: work
rankad.cli.main()
"""
DROPPED = """
    Freed()
    for _ in range(2_000):
        time.sleep(0.01)
    return 0
"""
SWALLOWED = """
    try:
        Freed.__del__(None)
    except BaseException:
        pass
    for _ in range(2_000):
        time.sleep(0.01)
    return 0
"""
ANOTHER_ERROR = """
    try:
        Freed.__del__(None)
    except BaseException:
        raise ValueError("loops cannot be compiled")
"""
AN_EXIT = """
    try:
        Freed.__del__(None)
    except BaseException:
        sys.exit(1)
"""
CLEANS_UP = """
    try:
        Freed.__del__(None)
    finally:
        clean_up()
"""


def ran(work, sent="SIGTERM"):
    code = RUN.format(work=work.strip("\n"), sent=sent)
    return subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=15
    )


@pytest.mark.parametrize("work", [DROPPED, SWALLOWED, ANOTHER_ERROR, AN_EXIT])
def test_a_signal_that_python_drops_or_hides_ends_the_run(work):
    done = ran(work)
    assert (done.returncode, done.stdout) == (143, "")
    assert done.stderr == "rankad: terminated; no file was changed\n"


def test_an_interruption_is_told_from_an_order_to_end():
    done = ran(DROPPED, "SIGINT")
    assert (done.returncode, done.stderr) == (130, "rankad: interrupted; no file was changed\n")


def test_cleaning_up_is_not_interrupted_again():
    done = ran(CLEANS_UP)
    assert (done.returncode, done.stdout) == (143, "cleaned up\n")
    assert done.stderr == "rankad: terminated; no file was changed\n"
