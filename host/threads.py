"""A thread of one's own, which ends with the process whatever interrupted it."""

import threading
from concurrent.futures import ThreadPoolExecutor

__all__ = ["one_thread"]


def one_thread(name: str) -> ThreadPoolExecutor:
    """An executor of one thread, which runs already.

    Another thread starts it. Where a signal's exception cuts a start short, the executor never
    learns of its thread, and the interpreter would wait for that for ever at its end.
    """
    made: list[ThreadPoolExecutor] = []

    def make() -> None:
        executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        executor.submit(int).result()
        made.append(executor)

    starter = threading.Thread(target=make, daemon=True)
    starter.start()
    starter.join()
    return made[0]
