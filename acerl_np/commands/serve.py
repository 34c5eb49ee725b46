"""`acerl-np serve`: a dispatcher as a process: events in, orders out, as lines of JSON."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.players import find_policy
from acerl_np.commands.shared.progress import catch_signals
from acerl_np.support.errors import InputError, PolicyError, StorageError, describe
from acerl_np.support.fields import Field
from acerl_np.support.files import path_exists, read_text

if TYPE_CHECKING:
    import socket

    from acerl_np.live.dispatcher import Dispatcher
    from acerl_np.live.service import Service
    from acerl_np.live.worker import Worker

MOST_PORTS = 65_535

LEAST_TOKEN = 16
"""Characters of the shortest token."""

HOUR, DAY = 3_600.0, 86_400.0
AHEAD = 5.0
"""s that messages may be ahead of the clock on the wall."""


def parse_clock(text: str) -> tuple[str, float | None]:
    """Parse "messages", "wall", or "wall:5": the seconds that messages may be ahead of it."""
    name, _, seconds = text.partition(":")
    try:
        ahead = float(seconds) if seconds else AHEAD
    except ValueError:
        ahead = -1.0
    if (name, seconds) == ("messages", ""):
        return name, None
    if name != "wall" or not 0.0 <= ahead <= HOUR:
        expected = f"messages, wall, or wall:SECONDS of at most {HOUR:g}"
        raise argparse.ArgumentTypeError(f"read {describe(text)}; expected {expected}")
    return name, ahead


OPTIONS: opt.Options = {
    "": (opt.Argument("policy POLICY?", "a policy's file, or a name", default="general"),),
    opt.PLAY: (
        opt.Argument(
            "--shadow",
            "give no orders: Assign and Send tell what your control system decided, and are compared",
            opt.SWITCH,
        ),
        opt.Argument(
            "--overdue SECONDS",
            "an order is overdue so long after twice the expected time",
            opt.number(0.0, DAY),
            default=300.0,
        ),
    ),
    opt.RECORDS: (opt.ONE_LAYOUT.but(required=False),),
    opt.OUTPUT: (
        opt.Argument("--log FILE.jsonl", "log file; continued if it exists"),
        opt.Argument(
            "--state FILE.npz",
            "state, from which the next start is quicker (default: LOG.state.npz)",
        ),
        opt.Argument("--rotate", "a new log each day; the old one gets its date", opt.SWITCH),
        opt.Argument(
            "--names NAME",
            "what orders call sites: 'site' (ids) or 'node' (first aliases)",
            Field(("site", "node")),
            default="site",
        ),
        opt.Argument("--explain", "each assignment has its reason", opt.SWITCH),
        opt.Argument("--fsync", "lines are on the disk before they are answered", opt.SWITCH),
        opt.Argument("--schema", "print the JSON Schema of messages, and stop", opt.SWITCH),
    ),
    opt.RUNNING: (
        opt.Argument(
            "--clock CLOCK",
            "time of the messages, or 'wall' (seconds since 1970); 'wall:5': messages may be 5 s ahead",
            parse_clock,
            default="messages",
        ),
        opt.Argument(
            "--lateness SECONDS",
            "how late an event may come, by its time (default: 5; with --clock wall:5 10, and so on)",
            opt.number(0.0, DAY),
        ),
        opt.Argument("--http HOST:PORT", "serve HTTP (needs the extra serve)"),
        opt.Argument(
            "--token-file FILE", "file with the access token; required unless HOST is local"
        ),
        opt.Argument("--origin ORIGIN", "address of the page behind a proxy"),
        opt.SEED_OPTION,
    ),
}


def run(arguments: argparse.Namespace) -> int:
    """Dispatch a floor as a process that your control system tells what happens.

    Each line of the standard input is a message, such as {"kind": "TaskArrived", ...}, and each line of the
    output an order or an answer. An event that is answered "Ok" is in the log. After a restart resend
    unanswered messages; a message with a known number is ignored. docs/service.md has all of it.

    Examples
    --------
      acerl-np serve --layout floor.json --log day.jsonl
      acerl-np serve policy.npz --layout floor.json --log day.jsonl --http 127.0.0.1:8080 --clock wall
      acerl-np serve --schema > messages.json
    """
    from acerl_np.live.service import Service
    from acerl_np.live.wire import make_schema
    from acerl_np.live.worker import Worker

    if arguments.schema:
        print(json.dumps(make_schema(), indent=1))
        return 0
    if arguments.layout is None:
        raise InputError("--layout: missing; expected the floor to dispatch")
    address = None if arguments.http is None else read_address(arguments.http)
    if arguments.rotate and (arguments.log is None or arguments.state is None):
        raise InputError("--rotate: expected --log and --state, from which the next start goes on")
    paths = [Path(path).resolve() for path in (arguments.log, arguments.state) if path is not None]
    if len({*paths}) < len(paths):
        raise InputError(f"--state: {arguments.state} is the log, too; expected another file")
    clock, ahead = (arguments.clock, None) if isinstance(arguments.clock, str) else arguments.clock
    wall = clock == "wall"
    token = "" if arguments.token_file is None else read_token(arguments.token_file)
    origin = "" if arguments.origin is None else read_origin(arguments.origin)
    for option, value in (("--token-file", token), ("--origin", origin)):
        if value and address is None:
            raise InputError(f"{option}: without --http, where it does nothing; expected both")
    if origin and not token:
        say(f"--origin without --token-file: everyone who reaches {origin} may dispatch")
    with ExitStack() as kept:
        listening = None
        if address is not None:
            from acerl_np.live.web import check_door, open_door

            check_door(address[0], token)
            listening = kept.enter_context(open_door(address))
        own: dict[str, Any] = {
            "shadow": bool(arguments.shadow),
            "slack": arguments.overdue,
            "names": arguments.names,
            "say": say,
        }
        own["ahead"] = ahead
        own["log"] = arguments.log if arguments.rotate else None
        dispatcher = kept.enter_context(start(arguments, own["ahead"]))
        service = Service(dispatcher, place_state(arguments), **own)
        begin_state(service, is_own=arguments.state is None)
        ready = {"kind": "Ready", "last_number": dispatcher.last_number}
        worker = kept.enter_context(Worker(service, wall=wall))
        if address is None:
            serve_lines(worker, ready)
        else:
            assert listening is not None
            serve_http(worker, address[0], listening, ready, token=token, origin=origin)
        worker.stop()
        service.save()
        if worker.error is not None:
            raise worker.error
    return 0


def serve_lines(worker: Worker, ready: dict[str, Any]) -> None:
    """Serve standard input and output until the input ends, or a signal comes."""
    from acerl_np.live import stdio
    from acerl_np.live.wire import format_line

    if sys.stdin is None:
        raise InputError("standard input: closed; expected it open, or --http")
    source: Any = sys.stdin.buffer  # whose lock a thread may hold as the process ends
    tell(format_line(ready))
    with catch_signals() as caught:
        stdio.serve_lines(worker, source.raw.read, tell, lambda: caught() is not None)


def serve_http(
    worker: Worker,
    host: str,
    listening: socket.socket,
    ready: dict[str, Any],
    *,
    token: str,
    origin: str,
) -> None:
    """Serve HTTP until a signal comes."""
    from acerl_np.live.web import Page, make_server
    from acerl_np.live.wire import format_line
    from acerl_np.pictures.replay import describe_floor, make_live_page

    page = Page(*make_live_page(), describe_floor)
    server = make_server(worker, host, token=token, page=page, origin=origin)
    shown = f"[{host}]" if ":" in host else host
    # The server ends in order at a signal, and raises it anew: the state is still to be written.
    with catch_signals():
        tell(format_line({**ready, "http": f"http://{shown}:{listening.getsockname()[1]}"}))
        server.run(sockets=[listening])


def read_address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > MOST_PORTS:
        raise InputError(
            f"--http: read {describe(text)}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
    return host.strip("[]"), int(port)


def read_token(path: str) -> str:
    """Return the token in a file."""
    token = read_text(path, InputError).strip()
    if len(token) < LEAST_TOKEN or not (token.isascii() and token.isprintable()):
        expected = f"expected one line of at least {LEAST_TOKEN} plain characters, drawn at random"
        raise InputError(f"--token-file: {path}: read {len(token)} characters; {expected}")
    return token


def read_origin(text: str) -> str:
    """Return where browsers find the page: a scheme and a host, and a port that is not the usual one."""
    if not re.fullmatch(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", text.lower()):
        raise InputError(f"--origin: read {describe(text)}; expected such as https://plant.example")
    return text.lower()


def place_state(arguments: argparse.Namespace) -> str | None:
    """Return where the state is written: unless named, beside the log."""
    state: str | None = arguments.state
    log = arguments.log
    if state is not None or log is None or (path_exists(log) and not Path(log).is_file()):
        return state
    return f"{log}.state.npz"


def begin_state(service: Service, *, is_own: bool) -> None:
    """Write the state, so that one that can never be written is refused now; without one it goes on."""
    try:
        service.save(time.time())
    except (PolicyError, StorageError) as error:
        if not is_own:
            raise
        say(f"no state is written, so a restart reads the whole log: {error}")
        service.state = None


def start(arguments: argparse.Namespace, ahead: float | None) -> Dispatcher:
    """Return the dispatcher: a new one, or as it was when the one before ended."""
    from acerl_np.live.dispatcher import Dispatcher
    from acerl_np.live.feed import LATE
    from acerl_np.live.log import name_new

    policy = find_policy(arguments.policy)
    options: dict[str, Any] = {"seed": arguments.seed, "explain": bool(arguments.explain)}
    if ahead is not None:  # one that is so far ahead makes no other one too late
        options["lateness"] = LATE + ahead
    if arguments.lateness is not None:
        options["lateness"] = arguments.lateness
    log, state = arguments.log, place_state(arguments)
    if log is None:
        say("no --log: what is told is lost with the process")
    saved = state if state is not None and path_exists(state) else None
    if log is not None and (saved is not None or path_exists(log)):
        if arguments.state is None and not any(map(path_exists, (log, name_new(log)))):
            raise InputError(
                f"{saved}: a state without its log {log}; expected the log, --state {saved} to go on "
                "from there, or no such file"
            )
        own = {"audit": log, "state": saved, "fsync": bool(arguments.fsync)}
        return Dispatcher.recover(arguments.layout, policy, **own, **options)
    begins = 0.0 if ahead is None else time.time()
    own = {"audit": log, "fsync": bool(arguments.fsync), "start": begins}
    return Dispatcher(arguments.layout, policy, **own, **options)


def tell(text: str) -> None:
    """Print lines at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def say(line: str) -> None:
    """Tell who runs the service."""
    print(line, file=sys.stderr, flush=True)


ACTION = opt.Action(run, OPTIONS)
