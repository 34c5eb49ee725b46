"""The service over HTTP (Starlette, uvicorn): messages by POST, orders as server-sent events."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import math
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from acerl_np.live.orders import MOST_KEPT
from acerl_np.live.stdio import read_line
from acerl_np.live.wire import MAX_MESSAGE, ORDERS, Message, format_line
from acerl_np.live.worker import BusyError, Piece, Worker
from acerl_np.support.errors import InputError, StorageError, WorkerError, needing
from acerl_np.support.files import describe_os_error
from acerl_np.support.version import __version__

with needing("{}: --http needs Starlette and uvicorn; pip install 'acerl_np[serve]'"):
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route
    from uvicorn import Config, Server
    from uvicorn.protocols.http.h11_impl import H11Protocol

ALIVE = 15.0
"""Seconds without an order after which a stream says that it is alive."""

CALM = 0.5
"""Seconds between two pictures of a page at least, and after which a stream sees that the server ends."""

MOST_REFUSED = 20
"""Refused messages that a page shows."""

MAX_TOKEN = 1_000
"""Bytes of the longest token that is compared."""

MOST_LINES, MAX_ANSWER = 10_000, 16_000_000
"""Messages of a request, and bytes of its answer."""

NDJSON = "application/x-ndjson"

MOST_DIGITS = 18
"""Of the number of an order."""

MOST_CONNECTIONS, MOST_STREAMS = 256, 64
"""Connections at a time, and streams among them."""

MAX_HEADERS = 16_384
"""Bytes of the longest head of a request."""

PATIENCE, GLANCE = 15.0, 1.0
"""Seconds for which a client may keep the service waiting, and after which that is seen."""

LINGER = 60.0
"""Seconds within which a client has to have taken all that it was sent, however well it gets on."""

HURRY = 2.0
"""Seconds after which a service that does not even tell its health does not dispatch, either."""

LATER = {"Retry_After": "1"}
"""Header of an answer to what may be told again soon."""

OPEN = ("/healthz", "/", "/login")
"""What needs no token: none of it tells anything of the floor."""


class Page(NamedTuple):
    """The page that shows a service as it runs.

    Attributes
    ----------
    html : str
    policy : str
        Its Content-Security-Policy.
    describe_floor : Callable
        What it is told of a layout, as plain values.
    """

    html: str
    policy: str
    describe_floor: Callable[[Any], dict[str, Any]]


def is_local(host: str) -> bool:
    """Whether nobody but this machine reaches a host."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class Shared:
    """What the worker tells all who ask within some seconds, until it is forgotten."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._at = seconds, 0.0
        self._told: asyncio.Future[Any] | None = None

    def forget(self) -> None:
        """Let the next one ask anew."""
        self._told = None

    async def get(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Return what was told, or ask for it."""
        told, now = self._told, time.monotonic()
        if told is None or (told.done() and now - self._at >= self._seconds):
            self._told, self._at = asyncio.ensure_future(make()), now
        assert self._told is not None
        return await asyncio.shield(self._told)


class Web:
    """The door of a service that is a port, and who listens to its orders there.

    Parameters
    ----------
    worker : Worker
    page : Page, optional
    """

    def __init__(self, worker: Worker, page: Page | None = None) -> None:
        self.worker, self.page, own = worker, page, worker.service.dispatcher
        kept = [{**x, "repeated": True} for x in own.unacknowledged]
        self.orders: deque[Message] = deque(kept, MOST_KEPT)
        self.n_orders = 0
        self.lost = kept[0]["number"] - 1 if kept else own.desk.orders.last
        """The highest number of an order that is not kept here."""
        self.refused: deque[Message] = deque(maxlen=MOST_REFUSED)
        self.n_refused = self.n_streams = 0
        self._came, self._changed = asyncio.Event(), asyncio.Event()
        self._shown, self._health = Shared(ALIVE), Shared(CALM)
        self._layout: Any = None
        self._floor = ""
        self.is_ending: Callable[[], bool] = lambda: False
        """Whether streams are to end, which would go on for ever."""

    def keep(self, messages: Iterable[Message]) -> None:
        """Let those who listen have the orders, and those who watch what was refused."""
        found = [x for x in messages if x["kind"] == "Refused"]
        self.refused.extend({**x, "wall": time.time()} for x in found)
        self.n_refused += len(found)
        self._shown.forget()
        self._changed.set()
        self._changed = asyncio.Event()
        orders = [x for x in messages if x["kind"] in ORDERS]
        if any(x["repeated"] for x in orders):
            known = {x["number"] for x in self.orders}
            orders = [x for x in orders if x["number"] not in known]
        for order in orders:
            if len(self.orders) == MOST_KEPT:
                self.lost = max(self.lost, self.orders[0]["number"])
            self.orders.append(order)
        if orders:
            self.n_orders += len(orders)
            self._came.set()
            self._came = asyncio.Event()

    async def work(self, work: Callable[[], Any], *, at_once: bool = False) -> Any:
        """Let the worker do something, and return what comes of it."""
        return await asyncio.wrap_future(self.worker.submit(work, at_once=at_once))

    async def take(self, request: Request) -> Response:
        """Answer the messages of a request, one on each line."""
        body = await read_body(request, MAX_MESSAGE)
        if body is None:
            return refuse(413, f"body: too long; expected at most {MAX_MESSAGE:,} bytes")
        if body.count(b"\n") > MOST_LINES:
            return refuse(413, f"body: expected at most {MOST_LINES:,} lines")
        if request.scope["path"] == "/policy":
            lines = [format_policy(body)]
        else:
            lines = [line for line in map(read_line, body.split(b"\n")) if line]
        pieces = self._answer(lines)
        first = await anext(pieces) if lines else Piece(0, "")
        if first.error is not None or first.n_taken == len(lines):
            status = 200 if first.error is None else 503
            return Response(show_piece(first), status, media_type=NDJSON)

        async def stream() -> AsyncIterator[str]:
            yield first.text
            size = len(first.text)
            async for piece in pieces:
                yield show_piece(piece)
                size += len(piece.text)
                if size > MAX_ANSWER:
                    why = f"answer: longer than {MAX_ANSWER:,} bytes; tell the rest again"
                    yield show_piece(Piece(0, "", StorageError(why)))
                    return

        return StreamingResponse(stream(), media_type=NDJSON)

    async def _answer(self, lines: list[str]) -> AsyncIterator[Piece]:
        """Give the answers to messages as they come; a BusyError if not even the first can be taken."""
        left = lines
        while left:
            try:
                piece = await asyncio.wrap_future(self.worker.answer(left))
            except BusyError:
                if left is lines:
                    raise
                await asyncio.sleep(0.05)
                continue
            yield piece
            if piece.error is not None:
                return
            left = left[piece.n_taken :]

    async def listen(self, request: Request) -> Response:
        """Stream the orders after that of `Last-Event-ID`, or of `after`, as they come."""
        known = request.headers.get("last-event-id") or request.query_params.get("after")
        after = known or "0"
        if not (after.isascii() and after.isdecimal() and len(after) <= MOST_DIGITS):
            return refuse(400, "after: expected the number of an order")

        async def stream() -> AsyncIterator[str]:
            told, n = int(after), self.n_orders
            kept = [x for x in self.orders if x["number"] > told]
            if known and told < self.lost:
                yield show_gap(told, self.lost + 1)
            for order in kept:
                yield show_event(order)
                told = order["number"]
            while not self.is_ending():
                came, n_new = self._came, self.n_orders - n
                fresh = list(self.orders)[max(0, len(self.orders) - n_new) :]
                n = self.n_orders
                if n_new > len(fresh):
                    yield show_gap(told, fresh[0]["number"])
                for order in fresh:
                    yield show_event(order)
                    told = order["number"]
                yield ": alive\n\n"
                await self._wait(came)

        return self._stream(request, stream())

    def _stream(self, request: Request, parts: AsyncIterator[str], **how: Any) -> Response:
        """Return what sends parts for as long as they come, if there are not too many such."""
        how["media_type"] = "text/event-stream"
        if request.method == "HEAD":
            return Response(**how)
        if self.n_streams >= MOST_STREAMS:
            return refuse(503, f"streams: there are {MOST_STREAMS}", **LATER)

        async def count() -> AsyncIterator[str]:
            self.n_streams += 1
            try:
                async for part in parts:
                    yield part
            finally:
                self.n_streams -= 1

        return StreamingResponse(count(), **how)

    async def _wait(self, event: asyncio.Event) -> None:
        """Wait until something has happened, a stream has to say that it is alive, or the server ends."""
        until = time.monotonic() + ALIVE
        while not (event.is_set() or self.is_ending() or time.monotonic() >= until):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), CALM)

    async def show_state(self, request: Request) -> Response:
        """Tell what waits, is under way, and where vehicles are."""
        service = self.worker.service
        text = await self.work(lambda: format_line(service.show(time.time())))
        return Response(text, media_type="application/json")

    async def show_health(self, request: Request) -> Response:
        """Tell whether the service dispatches."""
        health: dict[str, Any] = {"ok": False}
        with contextlib.suppress(asyncio.TimeoutError, WorkerError):
            service = self.worker.service
            make = partial(self.work, lambda: service.show_health(time.time()), at_once=True)
            health = await asyncio.wait_for(self._health.get(make), HURRY)
        status = 200 if health["ok"] else 503
        return Response(format_line(health), status, media_type="application/json")

    def _describe(self, refused: list[Message], n_refused: int) -> dict[str, Any]:
        """Return what the page shows, as server-sent events by name, and the queue; by the worker."""
        own = self.worker.service.dispatcher
        if own.layout is not self._layout and self.page is not None:
            self._layout = own.layout
            floor = {**self.page.describe_floor(own.layout), "version": __version__}
            self._floor = show_part("floor", floor)
        moment = own.describe()
        figures = {**moment.pop("figures"), "policy": moment.pop("policy")}
        moment["figures"] = {**figures, "refused": n_refused}
        moment["overdue"] = self.worker.service.list_overdue(time.time())
        queue = moment.pop("queue")
        parts = {name: show_part(name, part) for name, part in moment.items()}
        return {
            "floor": self._floor,
            "queue": queue,
            **parts,
            "refused": show_part("refused", refused),
        }

    async def describe(self) -> dict[str, Any]:
        """Return what the page shows; once for all who watch."""
        work = partial(self._describe, list(self.refused), self.n_refused)
        found: dict[str, Any] = await self._shown.get(partial(self.work, work))
        return found

    async def watch(self, request: Request) -> Response:
        """Stream what the page shows: each part first whole, then as it changes; of the queue what is new."""

        async def stream() -> AsyncIterator[str]:
            told, last = dict[str, str](), -math.inf
            while not self.is_ending():
                changed = self._changed
                try:
                    parts = dict(await self.describe())
                except WorkerError:
                    return
                except BusyError:
                    self._shown.forget()
                    await asyncio.sleep(CALM)
                    continue
                samples = [row for row in parts["queue"] if row[0] > last]
                last = samples[-1][0] if samples else last
                parts["queue"] = show_part("queue", samples) if samples else ""
                for name, part in parts.items():
                    if part and told.get(name) != part:
                        yield part
                told = parts
                yield show_part("now", time.time() if self.worker.wall else None)
                await asyncio.sleep(CALM)
                await self._wait(changed)

        return self._stream(request, stream(), headers=PRIVATE)

    async def show_page(self, request: Request) -> Response:
        """Give the page, which holds nothing of the floor."""
        assert self.page is not None
        return HTMLResponse(self.page.html, headers={**CLOSED, CSP: self.page.policy})


def refuse(status: int, why: str, **headers: str) -> Response:
    """Return an answer that says why a request is not taken."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PlainTextResponse(f"{why}\n", status, headers=named)


CSP = "Content-Security-Policy"
PRIVATE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
CLOSED = {**PRIVATE, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}


class Guard:
    """Refuses a page of another origin, a host that is not this one, and who does not show the token.

    A cookie that `log_in` gave lets its holder look, and change nothing. `origin` is that of a proxy before
    the service, or "".
    """

    def __init__(self, app: Any, token: str, *, local: bool, origin: str) -> None:
        self.app, self.token, self.local, self.origin = app, token, local, origin
        self.cookie, self.mark = make_cookie(token)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or refuse it."""
        try:
            await (self._refuse(scope) or self.app)(scope, receive, send)
        except (BusyError, WorkerError) as error:
            why = str(error) or "busy: too much waits; tell it again"
            await refuse(503, why, **LATER)(scope, receive, send)

    def _refuse(self, scope: Any) -> Response | None:

        if scope["type"] != "http":
            return None
        request = Request(scope)
        origin, host = request.headers.get("origin"), request.headers.get("host", "").lower()
        own = find_host(host)
        if self.local and not is_local(own) and own != (find_host(self.origin) or None):
            return refuse(400, "host: not this one")
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        if origin is not None and origin != self.origin:
            own, of_proxy = (text.partition("://")[2] for text in (origin, self.origin))
            if own != host or own == of_proxy:
                return refuse(403, "origin: of another page")
        if not self.token or scope["path"] in OPEN or is_same(shown, self.token):
            return None
        looks = request.method in ("GET", "HEAD")
        if looks and is_same(request.cookies.get(self.cookie, ""), self.mark):
            return None
        return refuse(401, "authorization: expected Bearer TOKEN")


def find_host(address: str) -> str:
    """Return the host of an origin, or of what a client calls the host, "" if it has none."""
    with contextlib.suppress(ValueError):
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    return ""


def is_same(shown: str, expected: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(shown.encode(errors="replace"), expected.encode())


def make_cookie(token: str) -> tuple[str, str]:
    """Return the name and the value of the cookie of a token, from which nobody can reckon the token.

    It is the same after a restart. Services on other ports of a host share cookies, so names differ.
    """
    name, value = (
        hmac.new(token.encode(), what, hashlib.sha256).hexdigest() for what in (b"name", b"value")
    )
    return f"acerl_np_{name[:16]}", value


def make_login(token: str, origin: str) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers `POST /login`, whose body is the token, with the cookie."""

    async def log_in(request: Request) -> Response:

        body = await read_body(request, MAX_TOKEN)
        if body is None:
            return refuse(413, f"token: expected at most {MAX_TOKEN:,} bytes")
        if not is_same(body.decode(errors="replace").strip(), token):
            return refuse(401, "token: not the one of this service")
        answer, (name, value) = Response(status_code=204), make_cookie(token)
        if token:
            asked = request.headers.get("origin")
            secure = request.scope["scheme"] == "https" or (
                asked == origin and origin.startswith("https")
            )
            answer.set_cookie(name, value, secure=secure, httponly=True, samesite="strict")
        return answer

    return log_in


async def read_body(request: Request, most: int) -> bytes | None:
    """Return the body of a request, None if it is longer than `most` bytes or its client has gone."""
    body = bytearray()
    with contextlib.suppress(ClientDisconnect):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                return None
        return bytes(body)
    return None


def format_policy(body: bytes) -> str:
    """Return the body of `POST /policy` as a message: JSON with a name, or the bytes of a policy's file."""
    if body[:1] != b"{":
        return format_line({"kind": "Policy", "file": base64.b64encode(body).decode()})
    try:
        return format_line({**json.loads(body), "kind": "Policy"})
    except (ValueError, RecursionError):  # which the service refuses as any such line
        return body.decode(errors="replace")


def show_piece(piece: Piece) -> str:
    """Return answers as lines; what has no answer because of an error has to be told again."""
    if piece.error is None:
        return piece.text
    return piece.text + format_line({"kind": "Failed", "number": None, "why": str(piece.error)})


def show_part(name: str, part: Any) -> str:
    """Return a part of what the page shows as a server-sent event."""
    return f"event: {name}\ndata: {format_line(part)}\n"


def show_event(order: Message) -> str:
    """Return an order as a server-sent event."""
    return f"id: {order['number']}\n{show_part(order['kind'], order)}"


def show_gap(after: int, before: int) -> str:
    """Return the server-sent event that says that orders between two numbers are not told here."""
    return show_part("gap", {"after": after, "before": before})


def make_app(web: Web, host: str, token: str, origin: str) -> Starlette:
    """Return the application; where anybody may reach it, any name of the host will do."""

    @contextlib.asynccontextmanager
    async def live(app: Any) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def publish(found: list[Message], text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(web.keep, found)

        web.worker.publish = publish
        web.worker.start()
        yield

    page = [
        Route("/", web.show_page),
        Route("/watch", web.watch),
        Route("/login", make_login(token, origin), methods=["POST"]),
    ]
    routes = [
        Route("/events", web.take, methods=["POST"]),
        Route("/policy", web.take, methods=["POST"]),
        Route("/orders", web.listen),
        Route("/state", web.show_state),
        Route("/healthz", web.show_health),
        *([] if web.page is None else page),
    ]
    guard = Middleware(Guard, token=token, local=is_local(host), origin=origin)
    return Starlette(routes=routes, middleware=[guard], lifespan=live)


def check_door(host: str, token: str) -> None:
    """Refuse to serve where others than this machine need no token, with an InputError."""
    if not is_local(host) and not token:
        raise InputError(f"--http: {host} may be reached by others; expected --token-file, too")


def open_door(address: tuple[str, int]) -> socket.socket:
    """Return the socket that listens at a host and a port.

    Answers wait for no acknowledgement of their first piece, 40 ms on Linux. Event loops see to that
    themselves, but not for sockets that Python made.

    Raises
    ------
    InputError
        If that is not possible, as where the port is in use.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listening = socket.create_server(address, family=family, backlog=1024)
    except OSError as error:
        where = f"{address[0]}:{address[1]}"
        raise InputError(f"--http: {where}: cannot listen: {describe_os_error(error)}") from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def make_protocol(most: int) -> type[asyncio.Protocol]:
    """Return what reads requests from a connection: of at most so many, and each as long as it gets on.

    What waits for a client for `PATIENCE` is ended: for a request or its body to be whole, or for some of
    an answer to be read; for `LINGER`: for all of it to be read. Where there are too many connections those
    make room that have begun no request.
    """

    class Bounded(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.stage, self.since = self.find_stage(), self.loop.time()
            self.taken = self.since
            known: list[Any] = [x for x in self.connections if not x.transport.is_closing()]
            if len(known) > most:
                idle = [x for x in known if x.find_stage()[0] == "request"]
                min(idle, key=lambda x: x.since).transport.abort()
            self.watch()

        def find_stage(self) -> tuple[str, Any, int]:
            """Return what is waited for, of which request, and how much is left."""
            cycle = self.cycle
            if cycle is None or cycle.response_complete:
                return "request", cycle, 0
            left = self.transport.get_write_buffer_size()
            return ("body" if cycle.more_body else "client" if left else ""), cycle, left

        def watch(self) -> None:
            """End what does not get on."""
            if self.transport.is_closing():
                return
            stage, now = self.find_stage(), self.loop.time()
            if stage != self.stage:
                self.stage, self.since = stage, now
            if not stage[2]:
                self.taken = now
            if now - self.taken >= LINGER or (stage[0] and now - self.since >= PATIENCE):
                self.transport.abort()
                return
            self.loop.call_later(GLANCE, self.watch)

    return Bounded


def count_connections() -> int:
    """Return how many connections there may be: the system's limit leaves room for files."""
    with contextlib.suppress(ImportError):  # Windows has no such limit
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return min(MOST_CONNECTIONS, limit // 2) if limit > 0 else MOST_CONNECTIONS
    return MOST_CONNECTIONS


def make_server(
    worker: Worker, host: str, *, token: str = "", page: Page | None = None, origin: str = ""
) -> Server:
    """Return a server of a service, and of the page that shows it; `check_door` first."""
    web = Web(worker, page)
    how: dict[str, Any] = {"log_level": "error", "timeout_graceful_shutdown": 3, "ws": "none"}
    most = count_connections()
    how["http"], how["backlog"] = make_protocol(most), most // 2  # accepted before any is ended
    how["h11_max_incomplete_event_size"] = MAX_HEADERS
    app = make_app(web, host, token, origin)
    server = Server(Config(app, access_log=False, **how))
    web.is_ending = lambda: server.should_exit

    def end() -> None:
        server.should_exit = True

    worker.on_end = end
    return server
