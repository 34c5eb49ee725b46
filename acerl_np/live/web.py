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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.live.orders import MOST_KEPT
from acerl_np.live.service import QUIET, Service
from acerl_np.live.wire import MAX_MESSAGE, ORDERS, Message, format_line
from acerl_np.support.errors import InputError, StorageError, needing
from acerl_np.support.version import __version__

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Server

EXTRA = "{}: --http needs Starlette and uvicorn; pip install 'acerl_np[serve]'"

ALIVE = 15.0
"""Seconds without an order after which a stream says that it is alive."""

CALM = 0.5
"""Seconds between two pictures of a page at least, and after which a stream sees that the server ends."""

MOST_REFUSED = 20
"""Refused messages that a page shows."""

MAX_TOKEN = 1_000
"""Bytes of the longest token that is compared."""

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


class Web:
    """A service, and who listens to its orders.

    Parameters
    ----------
    service : Service
    page : Page, optional
    wall : bool
        Whether times are seconds since 1970.
    """

    def __init__(self, service: Service, page: Page | None = None, *, wall: bool = False) -> None:
        self.service, self.page, self.wall = service, page, wall
        kept = [{**x, "repeated": True} for x in service.dispatcher.unacknowledged]
        self.orders: deque[Message] = deque(kept, MOST_KEPT)
        self.n_orders = 0
        self.refused: deque[Message] = deque(maxlen=MOST_REFUSED)
        self.n_refused = 0
        self._came, self._changed = asyncio.Event(), asyncio.Event()
        self._shown: dict[str, Any] | None = None
        self.is_ending: Callable[[], bool] = lambda: False
        """Whether streams are to end, which would go on for ever."""

    def keep(self, messages: Iterable[Message]) -> list[Message]:
        """Return messages, and let those who listen have the orders among them."""
        found = list(messages)
        refused = [{**x, "wall": time.time()} for x in found if x["kind"] == "Refused"]
        self.refused.extend(refused)
        self.n_refused += len(refused)
        self._shown = None
        self._changed.set()
        self._changed = asyncio.Event()
        orders = [x for x in found if x["kind"] in ORDERS]
        if any(x["repeated"] for x in orders):
            known = {x["number"] for x in self.orders}
            orders = [x for x in orders if x["number"] not in known]
        if orders:
            self.orders.extend(orders)
            self.n_orders += len(orders)
            self._came.set()
            self._came = asyncio.Event()
        return found

    async def take(self, request: Request) -> Response:
        """Answer the messages of a request, one on each line."""
        from starlette.responses import PlainTextResponse, Response

        body, is_policy = await read_body(request, MAX_MESSAGE), request.url.path == "/policy"
        if body is None:
            expected = f"at most {MAX_MESSAGE:,} bytes"
            return PlainTextResponse(f"body: too long; expected {expected}\n", 413)
        answers, status = list[Message](), 200
        try:
            lines = body.decode(errors="replace").splitlines()
            for line in [format_policy(body)] if is_policy else lines:
                answers += self.keep(self.service.answer(line)) if line.strip() else []
        except StorageError as error:  # what has no answer has to be told again
            answers.append({"kind": "Failed", "number": None, "why": str(error)})
            status = 503
        text = "".join(map(format_line, answers))
        return Response(text, status, media_type="application/x-ndjson")

    async def listen(self, request: Request) -> Response:
        """Stream the orders after that of `Last-Event-ID`, or of `after`, as they come."""
        from starlette.responses import PlainTextResponse, StreamingResponse

        after = request.headers.get("last-event-id") or request.query_params.get("after", "0")
        if not after.isdecimal():
            return PlainTextResponse("after: expected the number of an order\n", 400)

        async def stream() -> AsyncIterator[str]:
            last = self.n_orders
            for order in [x for x in self.orders if x["number"] > int(after)]:
                yield show_event(order)
            while not self.is_ending():
                came = self._came
                fresh = list(self.orders)[max(0, len(self.orders) - (self.n_orders - last)) :]
                last = self.n_orders
                for order in fresh:
                    yield show_event(order)
                yield ": alive\n\n"
                await self._wait(came)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _wait(self, event: asyncio.Event) -> None:
        """Wait until something has happened, a stream has to say that it is alive, or the server ends."""
        until = time.monotonic() + ALIVE
        while not (event.is_set() or self.is_ending() or time.monotonic() >= until):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), CALM)

    async def show_state(self, request: Request) -> Response:
        """Tell what waits, is under way, and where vehicles are."""
        from starlette.responses import Response

        return Response(format_line(self.service.show()), media_type="application/json")

    def describe(self) -> dict[str, Any]:
        """Return what the page shows, as plain values; once for all who watch."""
        if self._shown is None:
            own = self.service.dispatcher
            moment = own.describe()
            figures = {**moment.pop("figures"), "policy": moment.pop("policy")}
            figures["refused"] = self.n_refused
            self._shown = {**moment, "figures": figures, "refused": list(self.refused)}
        return self._shown

    async def watch(self, request: Request) -> Response:
        """Stream what the page shows: each part first whole, then as it changes; of the queue what is new."""
        from starlette.responses import StreamingResponse

        async def stream() -> AsyncIterator[str]:
            layout, told, last = None, dict[str, Any](), -math.inf
            while not self.is_ending():
                changed, own = self._changed, self.service.dispatcher
                if layout is not own.layout and self.page is not None:
                    layout = own.layout
                    floor = self.page.describe_floor(layout)
                    yield show_part("floor", {**floor, "version": __version__})
                parts = dict(self.describe())
                samples = [row for row in parts.pop("queue") if row[0] > last]
                if samples:
                    last = samples[-1][0]
                    yield show_part("queue", samples)
                for name, part in parts.items():
                    if told.get(name) != part:
                        yield show_part(name, part)
                told = parts
                yield show_part("now", time.time() if self.wall else None)
                await asyncio.sleep(CALM)
                await self._wait(changed)

        return StreamingResponse(stream(), media_type="text/event-stream", headers=PRIVATE)

    async def show_page(self, request: Request) -> Response:
        """Give the page, which holds nothing of the floor."""
        from starlette.responses import HTMLResponse

        assert self.page is not None
        return HTMLResponse(self.page.html, headers={**CLOSED, CSP: self.page.policy})

    async def ask(self) -> None:
        """Ask for orders after quiet, and when something is due, by the clock on the wall."""
        while True:
            await asyncio.sleep(QUIET)
            if self.service.is_due(time.time()):
                with contextlib.suppress(StorageError):  # asked again until the log can be written
                    self.keep(self.service.ask(time.time()))


CSP = "Content-Security-Policy"
PRIVATE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
CLOSED = {**PRIVATE, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}


class Guard:
    """Refuses a page of another origin, and who does not show the token, if there is one.

    A cookie that `log_in` gave lets its holder look, and change nothing.
    """

    def __init__(self, app: Any, token: str) -> None:
        self.app, self.token = app, token
        self.cookie, self.mark = make_cookie(token)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or refuse it."""
        await (self._refuse(scope) or self.app)(scope, receive, send)

    def _refuse(self, scope: Any) -> Response | None:
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            return None
        request = Request(scope)
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        if origin is not None and origin.partition("://")[2] != host:
            return PlainTextResponse("origin: of another page\n", 403)
        if not self.token or scope["path"] in OPEN or is_same(shown, self.token):
            return None
        looks = request.method in ("GET", "HEAD")
        if looks and is_same(request.cookies.get(self.cookie, ""), self.mark):
            return None
        return PlainTextResponse("authorization: expected Bearer TOKEN\n", 401)


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


def make_login(token: str) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers `POST /login`, whose body is the token, with the cookie."""

    async def log_in(request: Request) -> Response:
        from starlette.responses import PlainTextResponse, Response

        body = await read_body(request, MAX_TOKEN)
        if body is None:
            return PlainTextResponse(f"token: expected at most {MAX_TOKEN:,} bytes\n", 413)
        if not is_same(body.decode(errors="replace").strip(), token):
            return PlainTextResponse("token: not the one of this service\n", 401)
        answer, (name, value) = Response(status_code=204), make_cookie(token)
        if token:
            secure = request.url.scheme == "https"
            answer.set_cookie(name, value, secure=secure, httponly=True, samesite="strict")
        return answer

    return log_in


async def read_body(request: Request, most: int) -> bytes | None:
    """Return the body of a request, None of one that is longer than `most` bytes."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


def format_policy(body: bytes) -> str:
    """Return the body of `POST /policy` as a message: JSON with a name, or the bytes of a policy's file."""
    if body[:1] != b"{":
        return format_line({"kind": "Policy", "file": base64.b64encode(body).decode()})
    try:
        return format_line({**json.loads(body), "kind": "Policy"})
    except (ValueError, RecursionError):  # which the service refuses as any such line
        return body.decode(errors="replace")


def show_part(name: str, part: Any) -> str:
    """Return a part of what the page shows as a server-sent event."""
    return f"event: {name}\ndata: {format_line(part)}\n"


def show_event(order: Message) -> str:
    """Return an order as a server-sent event."""
    return f"id: {order['number']}\nevent: {order['kind']}\ndata: {format_line(order)}\n"


def make_app(web: Web, host: str, token: str, *, wall: bool) -> Starlette:
    """Return the application; where anybody may reach it, any name of the host will do."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def tell_health(request: Request) -> Response:
        return JSONResponse({"ok": True})

    @contextlib.asynccontextmanager
    async def live(app: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(web.ask()) if wall else None
        yield
        if task is not None:
            task.cancel()

    page = [
        Route("/", web.show_page),
        Route("/watch", web.watch),
        Route("/login", make_login(token), methods=["POST"]),
    ]
    known = ["localhost", "127.0.0.1", "[::1]"] if is_local(host) else ["*"]
    routes = [
        Route("/events", web.take, methods=["POST"]),
        Route("/policy", web.take, methods=["POST"]),
        Route("/orders", web.listen),
        Route("/state", web.show_state),
        Route("/healthz", tell_health),
        *([] if web.page is None else page),
    ]
    own = [Middleware(TrustedHostMiddleware, allowed_hosts=known), Middleware(Guard, token=token)]
    return Starlette(routes=routes, middleware=own, lifespan=live)


def check_door(host: str, token: str) -> None:
    """Refuse to serve without the extra, or where others than this machine need no token.

    Raises
    ------
    MissingExtraError
        If Starlette or uvicorn is missing.
    InputError
        If there is no token, and others could reach the host.
    """
    with needing(EXTRA):
        import starlette.applications  # noqa: F401
        import uvicorn  # noqa: F401
    if not is_local(host) and not token:
        raise InputError(f"--http: {host} may be reached by others; expected --token-file, too")


def open_door(address: tuple[str, int]) -> socket.socket:
    """Return the socket that listens at a host and a port.

    Answers wait for no acknowledgement of their first piece, 40 ms on Linux. Event loops see to that
    themselves, but not for sockets that Python made.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listening = socket.create_server(address, family=family)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def make_server(
    service: Service, host: str, *, token: str = "", wall: bool = False, page: Page | None = None
) -> Server:
    """Return a server of a service, and of the page that shows it; `check_door` first."""
    import uvicorn

    web = Web(service, page, wall=wall)
    app = make_app(web, host, token, wall=wall)
    how: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, **how))
    web.is_ending = lambda: server.should_exit
    return server
