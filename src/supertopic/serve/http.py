"""The server itself: paths, who may ask, and how it starts and ends. Starlette and uvicorn are imported here alone."""

import asyncio
import hmac
import json
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from supertopic import __version__
from supertopic.serve.asked import parse_body, read_asked, read_one
from supertopic.serve.batches import Batches, too_long
from supertopic.serve.limits import Limits, Refused
from supertopic.serve.metrics import Metrics
from supertopic.serve.openapi import describe
from supertopic.serve.page import Page
from supertopic.serve.reload import ModelFile

log = logging.getLogger("supertopic.serve")
LARGE = 2**18  # bytes
MOST_HEAD, HEAD_SECONDS = 2**16, 10.0  # of a request: bytes, and how long they may take
OPEN = ("/", "/health")  # paths without data, for which no token is asked
HEADERS = [
    (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"), (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"), (b"x-frame-options", b"DENY"),
]  # fmt: skip
Endpoint = Callable[[Request], Awaitable[Response]]


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    data = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(data, status, headers, media_type="application/json")


def refusal(error: Refused) -> Response:
    headers = {} if error.retry is None else {"Retry-After": str(error.retry)}
    return as_json(error.body(), error.status, headers)


class Service:
    """The answers to requests."""

    def __init__(self, model: ModelFile, limits: Limits, metrics: Metrics, token: str | None, n_threads: int):
        self.model, self.limits, self.metrics, self.token = model, limits, metrics, token
        self.batches = Batches(limits, n_threads, metrics.predicted)
        self.explainer = ThreadPoolExecutor(1, "explain")
        self.n_explaining = 0
        self.page = Page()

    async def body(self, request: Request) -> dict[str, Any]:
        """The body as an object, read no further than the limit."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # other pages may send anything else without asking
            raise Refused(415, f"Content-Type is {kind[:80]!r}; application/json was expected.")
        data = bytearray()
        async for part in request.stream():
            data += part
            if len(data) > self.limits.body:
                raise Refused(413, f"The body has more than {self.limits.body:,} bytes. Send several requests.")
        if len(data) > LARGE:  # others are answered meanwhile
            return await asyncio.get_running_loop().run_in_executor(None, parse_body, bytes(data), self.limits)
        return parse_body(bytes(data), self.limits)

    async def predict(self, request: Request) -> Response:
        served = self.model.current  # the request ends on this one
        asked = read_asked(await self.body(request), served.needs, self.limits)
        rows = await self.batches.predict(served, asked)
        return as_json(rows[0] if asked.single else {"predictions": rows})

    async def explain(self, request: Request) -> Response:
        served = self.model.current
        document, level = read_one(await self.body(request), served.needs, self.limits)
        if self.n_explaining >= self.limits.waiting:
            raise Refused(503, f"{self.n_explaining:,} requests are waiting already. Try again in a second.", retry=1)
        self.n_explaining += 1
        loop = asyncio.get_running_loop()
        try:
            return as_json(await loop.run_in_executor(self.explainer, served.explain, document, level))
        finally:
            self.n_explaining -= 1

    async def topics(self, request: Request) -> Response:
        return as_json({"topics": self.model.current.topics})

    async def about(self, request: Request) -> Response:
        """What the page and other programs need to know of the model."""
        served, limits = self.model.current, self.limits
        needs = served.needs
        return as_json({
            "name": served.name, "kind": needs.kind, "response": needs.response, "answers": list(needs.answers),
            "needs": needs.beside, "covariates": needs.covariates, "features": needs.n_features,
            "groups": list(needs.groups[:1000]), "exposure": needs.takes_exposure, "sets": needs.has_sets,
            "conformal": needs.has_conformal,
            "limits": {name: getattr(limits, name) for name in ("body", "texts", "letters", "seconds")},
        })  # fmt: skip

    async def health(self, request: Request) -> Response:
        failed, current = self.model.failed, self.model.current
        found: dict[str, Any] = {"status": "ok" if failed is None else "old model"}
        if self.allowed(request.headers.get("authorization", "")):
            found |= {"version": __version__, "model": current.name, "loaded": current.loaded,
                      "loads": self.model.n_loaded, "failed": failed}  # fmt: skip
        return as_json(found)

    async def figures(self, request: Request) -> Response:
        waiting = self.batches.n_open + self.n_explaining
        text = self.metrics.text(waiting, self.model.current.loaded)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return as_json(describe(self.model.current.needs, self.limits, __version__, self.token is not None))

    async def show_page(self, request: Request) -> Response:
        return Response(self.page.html, media_type="text/html", headers={"Content-Security-Policy": self.page.policy})

    def allowed(self, authorization: str) -> bool:
        """Whether a request has the token, compared in constant time."""
        if self.token is None:
            return True
        kind, _, given = authorization.partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self.token.encode())
        return right and kind.lower() == "bearer"

    def close(self) -> None:
        self.model.close()
        self.batches.close()
        self.explainer.shutdown(cancel_futures=True)


class Guard:
    """Around all paths: which host, which token, security headers, a limit of time, and figures."""

    def __init__(self, app: ASGIApp, service: Service, hosts: frozenset[str] | None, routes: frozenset[str]):
        self.app, self.service, self.hosts, self.routes = app, service, hosts, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            self.check(scope)
            async with asyncio.timeout(self.service.limits.seconds + 1.0):
                await self.app(scope, receive, send_safely)
        except Refused as error:
            await refusal(error)(scope, receive, send_safely)
        except TimeoutError:
            await refusal(too_long(self.service.limits))(scope, receive, send_safely)
        except Exception:
            if not status:  # else `on_error` has answered and logged it
                raise
        finally:
            route = scope["path"] if scope["path"] in self.routes else "other"
            self.service.metrics.answered(route, status, time.perf_counter() - began)

    def check(self, scope: Scope) -> None:
        """Refuse names that are not this server's (DNS rebinding), large bodies, and requests without the token."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self.hosts is not None and host_name(headers.get(b"host", "")) not in self.hosts:
            raise Refused(
                421, f"The Host header is {headers.get(b'host', '')[:80]!r}, which is not this server's name."
            )
        length = headers.get(b"content-length", "0")
        if length.isdecimal() and int(length[:18]) > self.service.limits.body:
            raise Refused(413, f"The body has more than {self.service.limits.body:,} bytes. Send several requests.")
        if scope["path"] not in OPEN and not self.service.allowed(headers.get(b"authorization", "")):
            raise Refused(401, "The token is missing or wrong. Send it as 'Authorization: Bearer TOKEN'.")


def host_name(header: str) -> str:
    """The name in a Host header, without the port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


async def on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error)


async def on_library(request: Request, error: Exception) -> Response:
    """What the library says of a document that it cannot take."""
    return refusal(Refused(422, str(error)[:2000]))


async def on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: "There is no such path. / is a page, and /openapi.json lists the paths.",
            405: "This path does not take that method; /openapi.json lists what it takes."}  # fmt: skip
    headers = dict(error.headers or {})
    return as_json({"error": {"status": error.status_code, "message": what.get(error.status_code, error.detail)}},
                   error.status_code, headers)  # fmt: skip


async def on_gone(request: Request, error: Exception) -> Response:
    return refusal(Refused(400, "The connection was closed before the whole body had come."))


async def on_error(request: Request, error: Exception) -> Response:
    log.error("A request failed: %s", type(error).__name__, exc_info=error)
    return refusal(Refused(500, "An internal error occurred; see the log of the server."))


def make_app(service: Service, hosts: frozenset[str] | None) -> ASGIApp:
    """All paths behind the guard."""
    paths: list[tuple[str, Endpoint, str]] = [
        ("/", service.show_page, "GET"), ("/predict", service.predict, "POST"), ("/explain", service.explain, "POST"),
        ("/topics", service.topics, "GET"), ("/model", service.about, "GET"), ("/health", service.health, "GET"),
        ("/metrics", service.figures, "GET"), ("/openapi.json", service.openapi, "GET"),
    ]  # fmt: skip

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, service.close)

    handlers: dict[Any, Any] = {
        Refused: on_refused, ValueError: on_library, TypeError: on_library, HTTPException: on_http,
        ClientDisconnect: on_gone, Exception: on_error,
    }  # fmt: skip
    routes = [Route(path, endpoint, methods=[method]) for path, endpoint, method in paths]
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False
    return Guard(app, service, hosts, frozenset(path for path, _, _ in paths))


class BoundedHeads(HttpToolsProtocol):
    """A connection ends if the head of a request is too long, or does not come."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.in_head, self.size = True, 0
        self.timer = self.loop.call_later(HEAD_SECONDS, transport.close)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self.in_head:  # another request on the same connection
            self.in_head, self.size = True, 0
            self.timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def on_headers_complete(self) -> None:
        self.in_head = False
        self.timer.cancel()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.size += len(data) if self.in_head else 0
        if self.size > MOST_HEAD and self.in_head:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.timer.cancel()
        super().connection_lost(exc)


def run(app: ASGIApp, listening: socket.socket, limits: Limits) -> None:
    """Serve until SIGTERM or SIGINT; what has been asked by then is answered."""
    config = uvicorn.Config(
        app, http=BoundedHeads, ws="none", log_config=None, log_level="error", access_log=False, server_header=False,
        proxy_headers=False, backlog=2048, timeout_keep_alive=30, timeout_graceful_shutdown=int(limits.seconds) + 1,
    )  # fmt: skip
    usual = {number: signal.signal(number, lambda number, frame: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        uvicorn.Server(config).run(sockets=[listening])  # its handlers hand the signal on at the end
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
