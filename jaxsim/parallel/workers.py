"""Work on the host in several processes, its results in order. Nothing here loads JAX."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any

from jaxsim import checks


def start(begin: Callable | None = None, *arguments: Any) -> None:
    """What a worker process does first: Ctrl-C is its parent's, and it ends with its parent, however that ended.

    Args:
      begin: called afterwards, with ``arguments``. Where it fails, the process says so in a line and ends.
      arguments: of ``begin``.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    if begin is not None:
        try:
            begin(*arguments)
        except Exception as error:  # the pool would print its traceback
            reason = " ".join(str(error).split()) or type(error).__name__
            print(f"a worker could not begin: {reason}", file=sys.stderr, flush=True)
            os._exit(1)


def in_order(here: Callable, items: Iterable, *, workers: int, there: Callable | None = None, begin: tuple = ()
             ) -> Iterator:
    """A function of every item, in order, a few items ahead in other processes.

    This process is one of the workers: it works while the others start, and whenever they have enough to do.

    Args:
      here: the function, in this process.
      items: what it is called with; read as needed.
      workers: processes, this one among them.
      there: the function in the others, of a module; ``here`` unless given.
      begin: what the others call first, a function of a module with its arguments; or nothing.

    Yields:
      The results.

    Raises:
      ValueError: for ``workers`` below 1, and where one of the other processes dies.

    Example:
      >>> list(in_order(len, ["a", "bc"], workers=1))
      [1, 2]
    """
    checks.positive_int(workers, "workers")
    if workers == 1:
        yield from map(here, items)
        return
    others = workers - 1
    try:
        with ProcessPoolExecutor(others, mp_context=get_context("spawn"), initializer=start, initargs=begin) as pool:
            waiting: deque[Future] = deque()
            started = pool.submit(os.getpid)
            try:
                for item in items:
                    if started.done() and sum(not future.done() for future in waiting) < 2 * others:
                        waiting.append(pool.submit(there or here, item))
                    else:
                        waiting.append(Future())
                        waiting[-1].set_result(here(item))
                    while waiting and (waiting[0].done() or len(waiting) > 4 * workers):
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    except BrokenProcessPool as error:
        raise ValueError(f"workers: expected {checks.counted(others, 'other process', 'other processes')} to the end, "
                         "got one that died, killed or out of memory (fewer take less)") from error  # fmt: skip
