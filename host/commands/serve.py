"""watersmeet serve: the worker daemon."""

import argparse
import os
import sys

from host.errors import ServiceError
from host.service.daemon import AlreadyServed, Daemon
from host.service.places import Place

__all__ = ["run"]

#: Rows of a stream that are joined at once: what a micro-batch has is there together, and the more
#: of it goes by at once, the less it costs.
_BATCH_ROWS = 1 << 16
#: How long a thread may keep the others waiting. Making an epoch durable is many short steps, and
#: results wait for it while the next rows are joined beside it.
_SWITCH_S = 0.0005


def run(arguments: argparse.Namespace) -> int:
    """Serve until the end; with --detach in another process, which serves when this returns."""
    place = Place.of(arguments.directory, arguments.backend, arguments.device)
    engine = {
        "backend": arguments.backend, "device": arguments.device, "batch": _BATCH_ROWS,
    }
    try:
        daemon = Daemon(place, engine, arguments.idle, arguments.patience)
    except AlreadyServed as error:
        if arguments.detach:
            return 0  # there is a daemon, which is all that was asked for
        raise ServiceError(str(error)) from None
    if arguments.detach:
        if os.fork():
            os._exit(0)
        _leave_terminal(place)
    else:
        print(f"watersmeet: serving {place.socket}", file=sys.stderr, flush=True)
    sys.setswitchinterval(_SWITCH_S)
    try:
        daemon.serve()
    finally:
        daemon.close()
    return 0


def _leave_terminal(place: Place) -> None:
    """A session of its own, and what it has to say goes to its log."""
    os.setsid()
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    said = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, nothing), (1, said), (2, said)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(said)
