"""The service over HTTP (Starlette, uvicorn): messages by POST, orders as server-sent events."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import ipaddress
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from acerl_np.live.audit import format_line
from acerl_np.live.orders import MOST_KEPT, ORDERS
from acerl_np.live.service import MAX_MESSAGE, QUIET, Message, Service
from acerl_np.support.errors import InputError, StorageError, needing

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Server

EXTRA = "{}: --http needs Starlette and uvicorn; pip install 'acerl_np[serve]'"

ALIVE = 15.0
"""Seconds without an order after which a stream says that it is alive."""


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
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        kept = [{**x, "repeated": True} for x in service.dispatcher.unacknowledged]
        self.orders: deque[Message] = deque(kept, MOST_KEPT)
        self.n_orders = 0
        self._came = asyncio.Event()

    def keep(self, messages: Iterable[Message]) -> list[Message]:
        """Return messages, and let those who listen have the orders among them."""
        found = list(messages)
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

        body, is_policy = bytearray(), request.url.path == "/policy"
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_MESSAGE:
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
            while True:
                came = self._came
                fresh = list(self.orders)[max(0, len(self.orders) - (self.n_orders - last)) :]
                last = self.n_orders
                for order in fresh:
                    yield show_event(order)
                yield ": alive\n\n"
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(came.wait(), ALIVE)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def show_state(self, request: Request) -> Response:
        """Tell what waits, is under way, and where vehicles are."""
        from starlette.responses import Response

        return Response(format_line(self.service.show()), media_type="application/json")

    async def ask(self) -> None:
        """Ask for orders after quiet, and when something is due, by the clock on the wall."""
        while True:
            await asyncio.sleep(QUIET)
            if self.service.is_due(time.time()):
                with contextlib.suppress(StorageError):  # asked again until the log can be written
                    self.keep(self.service.ask(time.time()))


class Guard:
    """Refuses a page of another origin, and who does not show the token, if there is one."""

    def __init__(self, app: Any, token: str) -> None:
        self.app, self.token = app, token

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
        needs = self.token and scope["path"] != "/healthz"
        if needs and not hmac.compare_digest(shown.encode(), self.token.encode()):
            return PlainTextResponse("authorization: expected Bearer TOKEN\n", 401)
        return None


def format_policy(body: bytearray) -> str:
    """Return the body of `POST /policy` as a message: JSON with a name, or the bytes of a policy's file."""
    if body[:1] != b"{":
        return format_line({"kind": "Policy", "file": base64.b64encode(body).decode()})
    try:
        return format_line({**json.loads(body), "kind": "Policy"})
    except (ValueError, RecursionError):  # which the service refuses as any such line
        return body.decode(errors="replace")


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

    known = ["localhost", "127.0.0.1", "[::1]"] if is_local(host) else ["*"]
    routes = [
        Route("/events", web.take, methods=["POST"]),
        Route("/policy", web.take, methods=["POST"]),
        Route("/orders", web.listen),
        Route("/state", web.show_state),
        Route("/healthz", tell_health),
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


def make_server(service: Service, host: str, *, token: str = "", wall: bool = False) -> Server:
    """Return a server of a service; `check_door` first."""
    import uvicorn

    app = make_app(Web(service), host, token, wall=wall)
    how: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 1}
    return uvicorn.Server(uvicorn.Config(app, access_log=False, **how))
