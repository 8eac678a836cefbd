"""Speak the script with one server and keep what it answered.

A step that captures nothing usable leaves its placeholders in later steps unfilled; those then fail on that server and show up
as differences, which is what should be seen first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.differential.step import Step, fill, pick
from tests.patience import PATIENCE

WATCH_SECONDS = 4.0
POLL = 0.1


@dataclass(frozen=True)
class Answer:
    """What one server said to one step."""

    code: int
    type: str
    warnings: int
    retry_after: bool
    body: Any

    def facts(self) -> dict[str, Any]:
        """Everything that is compared."""
        return {
            "code": self.code, "type": self.type, "warnings": self.warnings, "retryAfter": self.retry_after,
            "body": self.body,
        }  # fmt: skip


@dataclass
class Conversation:
    """A conversation with one server: what was captured, what was answered."""

    client: httpx.AsyncClient
    nobody: httpx.AsyncClient
    run: str
    captured: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    async def speak(self, steps: Iterable[Step]) -> None:
        """Say every step in order."""
        self.captured["run"] = self.run
        for step in steps:
            self.answers[step.id] = await self._say(step)

    async def _say(self, step: Step) -> Answer:
        end = asyncio.get_running_loop().time() + PATIENCE
        while True:
            answer = await (self._watch(step) if step.events else self._once(step))
            if not step.until or answer.code == step.until or asyncio.get_running_loop().time() > end:
                return answer
            await asyncio.sleep(POLL)

    def _client(self, step: Step) -> httpx.AsyncClient:
        return self.nobody if step.bare else self.client

    def _request(self, step: Step) -> httpx.Request:
        headers = {name: fill(value, self.captured) for name, value in step.headers.items()}
        content = step.content(self.captured)
        if content is not None and "Content-Type" not in headers:
            headers["Content-Type"] = step.type
        query = {name: fill(value, self.captured) for name, value in step.query.items()}
        return self._client(step).build_request(
            step.method, fill(step.path, self.captured), params=query or None, headers=headers, content=content
        )

    async def _once(self, step: Step) -> Answer:
        response = await self._client(step).send(self._request(step))
        body = _decoded(response.content)
        for name, path in step.capture.items():
            value = pick(body, path)
            if value is not None:
                self.captured[name] = value
        return _answer(response, body)

    async def _watch(self, step: Step) -> Answer:
        """Read `events` events, fewer when the time is over; a refusal is answered whole."""
        events: list[Any] = []
        response = await self.client.send(self._request(step), stream=True)
        try:
            if response.status_code != httpx.codes.OK:
                return _answer(response, _decoded(await response.aread()))
            try:
                async with asyncio.timeout(WATCH_SECONDS):
                    async for line in response.aiter_lines():
                        events.append(_decoded(line.encode()))
                        if len(events) >= step.events:
                            break
            except TimeoutError:
                pass
        finally:
            await response.aclose()
        return _answer(response, events)


def _answer(response: httpx.Response, body: Any) -> Answer:
    headers = response.headers
    return Answer(
        response.status_code, headers.get("content-type", ""), len(headers.get_list("warning")),
        "retry-after" in headers, body,
    )  # fmt: skip


def _decoded(content: bytes) -> Any:
    """JSON where it is JSON, else text."""
    try:
        return json.loads(content) if content else None
    except ValueError:
        return content.decode("utf-8", "replace")
