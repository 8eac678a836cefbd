"""Health with reasons, and the door for operators of a process without an API of its own.

`/livez` says that the process can answer; `/readyz` that it can do its work. With `?verbose`, or when something is wrong,
every check is listed with its reason, as Kubernetes does it. One check alone is at `/readyz/<name>`.

A warning is listed too and makes nothing unready: what one object's owner can cause must not take a server out of service. Probes
are open to everybody, so a warning counts and never names objects.

That door has health and metrics, on loopback, without TLS. It says nothing that is secret and changes nothing; bind it elsewhere
only behind something that authenticates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastness.http import Answer, Request, send_answer
from fastness.http.route import READING, allow_header
from fastness.observe import metrics

TEXT = b"text/plain; charset=utf-8"
Check = Callable[[], str | None]
"""What is wrong, or None when all is well."""


class Health:
    """The checks of one process."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {"ping": lambda: None}
        self._only_ready: set[str] = set()
        self._warnings: dict[str, Check] = {}

    def add(self, name: str, check: Check, *, only_ready: bool = True) -> None:
        """Have a check asked; `only_ready` keeps it out of `/livez`."""
        self._checks[name] = check
        if only_ready:
            self._only_ready.add(name)

    def warn(self, name: str, check: Check) -> None:
        """Have `/readyz` say what a check finds, without failing."""
        self._warnings[name] = check

    def warnings(self) -> Mapping[str, str]:
        """Every warning that there is reason for."""
        return {name: text for name, check in self._warnings.items() if (text := check()) is not None}

    def problems(self, *, ready: bool) -> Mapping[str, str | None]:
        """Every check with what is wrong, None when it is well."""
        return {name: check() for name, check in self._checks.items() if ready or name not in self._only_ready}

    def answer(self, probe: str, single: str, *, verbose: bool) -> Answer | None:
        """The answer of a probe (`healthz`, `livez`, `readyz`), or of one of its checks; None: no such check."""
        ready = probe != "livez"
        results, warnings = self.problems(ready=ready), self.warnings() if ready else {}
        if single:
            if single not in results and single not in self._warnings:
                return None
            results = {name: problem for name, problem in results.items() if name == single}
            warnings = {name: text for name, text in warnings.items() if name == single}
        failed = [name for name, problem in results.items() if problem is not None]
        if not failed and not warnings and not verbose:
            return Answer(200, b"ok", TEXT)
        lines = [
            f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}" for name, problem in results.items()
        ]
        lines += [f"[!]{name} warning: {text}" for name, text in warnings.items()]
        lines.append(f"{probe} check {'failed' if failed else 'passed'}\n")
        return Answer(500 if failed else 200, "\n".join(lines).encode(), TEXT)


_PROBES = ("healthz", "livez", "readyz")


class OpsApp:
    """Health and metrics; with a place of its own for health, that alone is there."""

    def __init__(self, health: Health, *, metrics: bool = True) -> None:
        self._health = health
        self._metrics = metrics

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] == "http":
            request = Request(scope, receive)
            await send_answer(self._answer(request), send, head=request.method == "HEAD")

    def _answer(self, request: Request) -> Answer:
        if request.method not in READING:
            return Answer(405, b"only GET\n", TEXT, (allow_header(READING),))
        parts = request.path.strip("/").split("/")
        if self._metrics and parts == ["metrics"]:
            return Answer(200, metrics.exposition(), b"text/plain; version=0.0.4; charset=utf-8")
        if parts[0] in _PROBES and len(parts) <= 2:
            single = parts[1] if len(parts) == 2 else ""
            answer = self._health.answer(parts[0], single, verbose=b"verbose" in request.raw_query)
            if answer is not None:
                return answer
        return Answer(404, b"not found\n", TEXT)
