"""Work on results in other processes while the next result is made."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")
CASES_A_WORKER = 4  # with fewer, starting the process takes longer than its work


def paying_workers(cases: int) -> int:
    """How many processes are worth starting for `cases` cases: all cores but the one that predicts, at most."""
    return min(len(os.sched_getaffinity(0)) - 1, cases // CASES_A_WORKER)


def in_processes(work: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Result]:
    """`work(*job)` of each of `jobs`, in their order, in `workers` processes of one thread; with 0 in this process.

    The next job is made while others are worked on; never do more than `workers` + 1 of them wait in memory. `work`
    and its arguments must be picklable. An exception of `work` is raised here.
    """
    if workers < 1:
        yield from (work(*job) for job in jobs)
        return
    waiting: deque[Future[Result]] = deque()
    spawning = multiprocessing.get_context("spawn")  # a fork would inherit locks that other threads hold
    with _one_thread_for_children(), ProcessPoolExecutor(workers, spawning, torch.set_num_threads, (1,)) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(work, *job))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_for_children() -> Iterator[None]:
    """Processes that start meanwhile have numpy with one thread; this one read the variable when it started."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
