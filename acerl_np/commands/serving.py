"""`acerl-np serve`: a dispatcher as a process: events in, orders out, as lines of JSON.

Dispatch a floor as a process that another program tells what happens. Each line of the standard input is a
message, a JSON object with its "kind": an event of docs/live.md, such as

  {"kind": "TaskArrived", "number": 1, "time": 12, "task": "t1", "pickup": "st1", "delivery": "st5",
   "expiry": 400}

on one line; or Decide (time): who takes which task now; Assign (time, vehicle, task) and Send (time, vehicle,
site): what somebody else has decided; BeginDay (start); Acknowledge (number): orders until that one have
come; Save. Each is answered in its turn by a line on the standard output, {"kind": "Ok", "number": 1,
"next_time": null} or {"kind": "Refused", "number": 1, "why": "..."}, after the orders that come of it:
Assigned, Recall, Park, Charge, as in the log. An event that is answered "Ok" is in the log, and is never lost
with the process; one that is refused has changed nothing.
--schema prints what may be told, as a JSON Schema.

Where the log is there already the service goes on from it, whatever ended it. Tell again what was not
answered: what comes twice with its number is ignored. Orders that may have been lost are given once more with
the next Decide, as "repeated". The end of the input, Ctrl-C or a termination ends it in order, and --state is
written, from which the next start is quicker.

--http HOST:PORT: POST /events takes messages, a line each, and answers as above; GET /orders is a stream of
orders (server-sent events), after the order of Last-Event-ID or ?after=; GET /state what waits and where
vehicles are; GET /healthz. GET / is a page that shows the day as it runs. Others than this machine reach it
only with --token-file: "Authorization: Bearer TOKEN"; the page asks for the token.

--rotate: with the first message of a new day, by the machine's date, a new log begins; day.jsonl of before is
day.2026-11-26.jsonl. --state is written before, and the next start needs it and the new log alone.

--shadow: it gives no orders. Assign and Send tell what your own control has decided; each is answered by a
line "Followed": what the policy would have ordered at that moment, and whether it agrees. An order that is
impossible to the model is no error: it is followed as far as can be, and listed with its reason (State, log).

--clock wall: times are seconds since 1970, and the service asks itself, 50 ms after the last message and
whenever a task or vehicle is due; nobody need send Decide.

Examples
--------
  acerl-np serve --layout floor.json --log day.jsonl
  acerl-np serve policy.npz --layout floor.json --log day.jsonl --state live.npz --explain
  acerl-np serve --layout floor.json --log day.jsonl --http 127.0.0.1:8080 --clock wall
  acerl-np serve --schema > messages.json
  acerl-np records convert --audit day.jsonl --layout floor.json --out day.csv   # tomorrow's training
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.interruption import catch_signals
from acerl_np.commands.shared.players import find_policy
from acerl_np.support.errors import InputError, describe
from acerl_np.support.files import path_exists, read_text

if TYPE_CHECKING:
    from acerl_np.live.dispatcher import Dispatcher
    from acerl_np.live.service import Service

MOST_PORTS = 65_535

OPTIONS = (
    opt.CommandOption(
        "policy POLICY?", "a policy's file, or a name (default: general)", default="general"
    ),
    opt.ONE_FLOOR.but(required=False),
    opt.CommandOption(
        "--log LOG.jsonl", "the log, which it goes on with where it is there already"
    ),
    opt.CommandOption("--state STATE.npz", "write the state at the end, and begin from there"),
    opt.CommandOption(
        "--clock",
        "whose time counts: that of messages, or seconds since 1970",
        default="messages",
        choices=("messages", "wall"),
    ),
    opt.CommandOption(
        "--http HOST:PORT",
        "serve HTTP in the place of standard input and output (needs the extra serve)",
    ),
    opt.CommandOption(
        "--token-file FILE", "what clients have to show; needed if others reach HOST"
    ),
    opt.CommandOption(
        "--rotate",
        "a new log each day, and the one of before is named by its date",
        bool,
        default=False,
    ),
    opt.CommandOption(
        "--shadow",
        "give no orders: Assign and Send tell what the plant's own control has decided, and each is compared",
        bool,
        default=False,
    ),
    opt.CommandOption("--explain", "each assignment has its reason", bool, default=False),
    opt.CommandOption(
        "--fsync", "lines of the log are on the disk before they are answered", bool, default=False
    ),
    opt.SEED,
    opt.CommandOption(
        "--schema", "print the JSON Schema of what may be told, and stop", bool, default=False
    ),
    opt.TRUST,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.declare(parser, *OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the input ends, or a signal comes; return the exit status."""
    from acerl_np.live.service import Service
    from acerl_np.live.wire import make_schema

    if arguments.schema:
        print(json.dumps(make_schema(), indent=1))
        return 0
    if arguments.layout is None:
        raise InputError("--layout: missing; expected the floor to dispatch")
    door = None if arguments.http is None else read_address(arguments.http)
    if arguments.rotate and (arguments.log is None or arguments.state is None):
        raise InputError("--rotate: expected --log and --state, from which the next start goes on")
    path, wall = arguments.token_file, arguments.clock == "wall"
    token = "" if path is None else read_text(path, InputError).strip()
    if door is not None:
        from acerl_np.live.web import check_door

        check_door(door[0], token)
    dispatcher = start(arguments)
    log = arguments.log if arguments.rotate else None
    service = Service(dispatcher, arguments.state, shadow=arguments.shadow, log=log)
    ready = {"kind": "Ready", "last_number": dispatcher.last_number}
    with dispatcher:
        if door is None:
            tell([ready])
            with catch_signals() as caught:
                serve(service, sys.stdin, wall=wall, stopped=lambda: caught() is not None)
        else:
            serve_http(service, door, token, ready, wall=wall)
        service.save()
    return 0


def serve_http(
    service: Service, door: tuple[str, int], token: str, ready: dict[str, Any], *, wall: bool
) -> None:
    """Serve HTTP until a signal comes."""
    from acerl_np.live.web import Page, make_server, open_door
    from acerl_np.pictures.live import make_live_page
    from acerl_np.pictures.replay import describe_floor

    page, host = Page(*make_live_page(), describe_floor), door[0]
    server = make_server(service, host, token=token, wall=wall, page=page)
    shown = f"[{host}]" if ":" in host else host
    # The server ends in order at a signal, and raises it anew: the state is still to be written.
    with open_door(door) as listening, catch_signals():
        tell([{**ready, "http": f"http://{shown}:{listening.getsockname()[1]}"}])
        server.run(sockets=[listening])


def read_address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > MOST_PORTS:
        raise InputError(
            f"--http: read {describe(text)}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
    return host.strip("[]"), int(port)


def start(arguments: argparse.Namespace) -> Dispatcher:
    """Return the dispatcher: a new one, or as it was when the one before ended."""
    from acerl_np.live.dispatcher import Dispatcher

    policy = find_policy(arguments.policy)
    options: dict[str, Any] = {"seed": arguments.seed, "explain": arguments.explain}
    log, state = arguments.log, arguments.state
    if log is None:
        print("no --log: what is told is lost with the process", file=sys.stderr)
    saved = state if state is not None and path_exists(state) else None
    if log is not None and (saved is not None or path_exists(log)):
        if not path_exists(log):
            Path(log).touch()  # a new one may go on from a state
        own = {"audit": log, "state": saved, "fsync": arguments.fsync}
        return Dispatcher.recover(arguments.layout, policy, **own, **options)
    begins = time.time() if arguments.clock == "wall" else 0.0
    own = {"audit": log, "fsync": arguments.fsync, "start": begins}
    return Dispatcher(arguments.layout, policy, **own, **options)


def tell(messages: Iterable[dict[str, Any]]) -> None:
    """Print messages, each at once."""
    from acerl_np.live.wire import format_line

    for message in messages:
        sys.stdout.write(format_line(message))
    sys.stdout.flush()


def serve(service: Service, lines: Iterable[str], *, wall: bool, stopped: Any) -> None:
    """Answer each line; with the clock on the wall also ask after quiet, and when something is due."""
    from acerl_np.live.service import QUIET

    told: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in lines:
            told.put(line)
        told.put(None)

    threading.Thread(target=read, daemon=True).start()
    while not stopped():
        try:
            line = told.get(timeout=QUIET)
        except queue.Empty:
            if wall and service.is_due(time.time()):
                tell(service.ask(time.time()))
            continue
        if line is None:
            return
        if line.strip():
            tell(service.answer(line))
