"""``capmodel serve``: the planner page."""

from __future__ import annotations

import socket

import click

from ..errors import MissingExtraError, SpecError


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
              help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to bind; others on the network can then ask.")  # fmt: skip
def command(port: int, host: str) -> None:
    """The planner page on this machine: sliders for model, node, sessions, DRAM and prices.

    \b
    capmodel serve
    capmodel serve --port 9000
    """
    from ..serve.app import make_app

    names = ("127.0.0.1", "localhost") if host in ("127.0.0.1", "localhost") else ("*",)
    app = make_app(names)
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("uvicorn", "web") from error
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise SpecError(f"{host}:{port}: {error.strerror}.", field="port") from error
        click.echo(f"http://{host}:{listener.getsockname()[1]}/ (Ctrl-C stops)", err=True)
        settings = uvicorn.Config(
            app, log_level="warning", limit_concurrency=32, timeout_keep_alive=5,
            h11_max_incomplete_event_size=16_384,
        )  # fmt: skip
        uvicorn.Server(settings).run(sockets=[listener])
