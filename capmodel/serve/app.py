"""The web application: three JSON answers and four files, read-only, for one machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from ..errors import CapmodelError, MissingExtraError
from . import planner
from .question import Question, parse_question

STATIC = Path(__file__).with_name("static")
FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/chart.js": ("chart.js", "text/javascript"),
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LONGEST_QUERY = 1024
# Solving is pure Python: more at once would only make each slower.
SOLVING = BoundedSemaphore(1)
WAIT_S = 10.0


def make_app(hosts: tuple[str, ...] = ("127.0.0.1", "localhost")) -> Any:
    """Return the Starlette application; `hosts` are the names it answers to.

    Raises
    ------
    MissingExtraError
        If Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.requests import Request
        from starlette.responses import JSONResponse, Response
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("starlette", "web") from error

    def refusal(message: str, status: int) -> Response:
        body = {"error": {"type": "SpecError", "message": message}}
        return JSONResponse(body, status_code=status, headers=HEADERS)

    def answering(solve: Callable[[Question], dict[str, Any]]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            if len(request.url.query) > LONGEST_QUERY:
                return refusal("the question is too long.", 414)
            if not SOLVING.acquire(timeout=WAIT_S):
                return refusal("busy; ask again.", 503)
            try:
                body = solve(parse_question(request.query_params))
            except CapmodelError as error:
                return JSONResponse({"error": error.to_dict()}, status_code=422, headers=HEADERS)
            finally:
                SOLVING.release()
            return JSONResponse(body, headers=HEADERS)

        return endpoint

    def offered(request: Request) -> Response:
        return JSONResponse(planner.choices(), headers=HEADERS)

    def file(name: str, kind: str) -> Callable[[Request], Response]:
        content = (STATIC / name).read_bytes()
        return lambda request: Response(content, media_type=kind, headers=HEADERS)

    routes = [Route(path, file(*entry)) for path, entry in FILES.items()]
    routes += [
        Route("/api/choices", offered),
        Route("/api/curve", answering(planner.curve)),
        Route("/api/screen", answering(planner.screen)),
    ]
    trusted = Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return Starlette(routes=routes, middleware=[trusted])
