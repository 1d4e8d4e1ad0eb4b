import threading

import numpy as np

from rankad._base.scratch import Scratch


def test_a_name_has_the_same_memory_again():
    scratch = Scratch()
    first = scratch.empty("rows", (4, 5))
    assert first.shape == (4, 5)
    assert first.dtype == np.float64
    assert first.flags.c_contiguous
    smaller = scratch.empty("rows", (3, 2))
    assert np.shares_memory(first, smaller)
    assert smaller.flags.c_contiguous
    assert not np.shares_memory(first, scratch.empty("others", (4, 5)))


def test_more_or_another_kind_of_numbers_is_new_memory():
    scratch = Scratch()
    first = scratch.empty("rows", (4, 5))
    first[:] = 1.0
    larger = scratch.empty("rows", (5, 5))
    single = scratch.empty("rows", (4, 5), np.float32)
    larger[:], single[:] = 2.0, 3.0
    assert (first == 1.0).all()
    assert single.dtype == np.float32


def test_every_thread_has_its_own():
    scratch = Scratch()
    own = scratch.empty("rows", (10,))
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch.empty("rows", (10,))))
    thread.start()
    thread.join()
    assert not np.shares_memory(own, found[0])
