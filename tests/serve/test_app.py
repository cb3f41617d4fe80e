"""The planner's answers over HTTP: what they hold, what they refuse, and how they are fenced in."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pytest

import capmodel as cm
from capmodel.cli import main
from capmodel.errors import SpecError
from capmodel.serve import planner
from capmodel.serve.app import FILES, LONGEST_QUERY, make_app
from capmodel.serve.question import Question, parse_question


@dataclass(frozen=True)
class Reply:
    """What the application sent."""

    status_code: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


class Client:
    """Calls the application as a server does, without a socket."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def get(self, url: str, host: str = "127.0.0.1") -> Reply:
        return self.call("GET", url, host)

    def call(self, method: str, url: str, host: str = "127.0.0.1") -> Reply:
        path, _, query = url.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(path), "query_string": query.encode(), "root_path": "",
            "headers": [(b"host", host.encode())], "server": ("127.0.0.1", 80),
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], headers, body.decode())


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(make_app())


def test_curve_is_the_pipelines_answer(client: Client) -> None:
    body = client.get("/api/curve?model=kimi-k3&node=8xB300&concurrency=8").json()
    row = next(row for row in body["rows"] if row["concurrency"] == 8)
    answer = cm.estimate(cm.Scenario(model="kimi-k3", node="8xB300"), 8, level="closed")
    assert row["output_tokens_per_s"] == pytest.approx(answer.output_tokens_per_s)
    assert row["margin"] == pytest.approx(answer.to_dict()["cost"]["margin"])


def test_prices_and_tier_reach_the_answer(client: Client) -> None:
    asked = "/api/curve?concurrency=16&gpu_hour_usd=4&input_usd=6&cached_usd=0.6&output_usd=30"
    bare = client.get(asked).json()["rows"]
    tiered = client.get(asked + "&offload_tib=2").json()["rows"]
    plain = client.get("/api/curve?concurrency=16&gpu_hour_usd=2").json()["rows"]
    for dear, cheap in zip(bare, plain, strict=True):
        assert dear["usd_per_mtok"] == pytest.approx(2 * cheap["usd_per_mtok"])
    at = next(i for i, row in enumerate(bare) if row["concurrency"] == 16)
    assert tiered[at]["output_tokens_per_s"] > 2 * bare[at]["output_tokens_per_s"]


def test_screen_names_the_command_of_the_same_answer(client: Client) -> None:
    body = client.get("/api/screen?concurrency=8&gpu_hour_usd=2").json()
    assert "--gpu-hour-usd 2.0 -c 8 --level closed" in body["command"]
    assert body["screen"][0][0] == "SAFE"
    assert body["cliff"]["low"] <= body["cliff"]["concurrency"] <= body["cliff"]["high"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("model=../../etc/passwd", "model"),
        ("model=kimi-k9", "model"),
        ("node=8xB9000", "node"),
        ("node=8xB300/..", "node"),
        ("workload=trace.csv", "workload"),
        ("concurrency=0", "concurrency"),
        ("concurrency=1000000", "concurrency"),
        ("concurrency=2.5", "concurrency"),
        ("offload_tib=nan", "offload_tib"),
        ("gpu_hour_usd=abc", "gpu_hour_usd"),
        ("extends=x", "extends"),
    ],
)
def test_bad_questions_are_refused(client: Client, query: str, field: str) -> None:
    reply = client.get(f"/api/curve?{query}")
    assert reply.status_code == 422
    assert reply.json()["error"]["field"] == field


def test_what_does_not_fit_is_an_answer(client: Client) -> None:
    reply = client.get("/api/curve?model=deepseek-r1&node=1xL4")
    assert reply.status_code == 422
    assert reply.json()["error"]["type"] == "InfeasibleError"
    assert "does not fit" in reply.json()["error"]["message"]


def test_long_questions_other_methods_and_other_hosts_are_refused(client: Client) -> None:
    assert client.get("/api/curve?model=" + "a" * LONGEST_QUERY).status_code == 414
    assert client.call("POST", "/api/curve").status_code == 405
    assert client.get("/", host="attacker.example").status_code == 400
    assert client.get("/../app.py").status_code == 404


def test_every_reply_has_the_strict_policy(client: Client) -> None:
    for path in (*FILES, "/api/choices", "/api/curve", "/api/curve?model=x"):
        reply = client.get(path)
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"


def test_page_names_no_other_host(client: Client) -> None:
    for path in FILES:
        text = client.get(path).text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text


def test_solved_scenarios_answer_a_drag_at_once(client: Client) -> None:
    client.get("/api/curve?concurrency=8")
    spent = []
    for price in (1, 2, 3, 4, 5):
        start = time.process_time()
        client.get(f"/api/curve?concurrency=8&gpu_hour_usd={price}")
        spent.append(time.process_time() - start)
    assert min(spent) < 0.05


def test_grid_does_not_move_under_a_drag() -> None:
    assert planner.grid(8) == planner.grid(10)
    assert max(planner.grid(100)) >= 150
    assert min(planner.grid(1)) == 1


def test_question_defaults_are_valid() -> None:
    assert parse_question({}) == Question()
    with pytest.raises(SpecError, match="Nearest"):
        parse_question({"modle": "kimi-k3"})


def test_choices_are_the_catalog(client: Client) -> None:
    offered: dict[str, Any] = client.get("/api/choices").json()
    assert "kimi-k3" in offered["models"]
    assert "B300" in offered["accelerators"]
    assert "agentic-coding" in offered["workloads"]


def test_address_in_use_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit) as stop:
            main(["serve", "--port", str(taken.getsockname()[1])])
    assert stop.value.code == 2
    assert "127.0.0.1" in capsys.readouterr().err
