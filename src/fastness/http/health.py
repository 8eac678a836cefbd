"""Health with reasons.

`/livez` says that the process can answer; `/readyz` that it can do its work. With `?verbose`, or when something is wrong,
every check is listed with its reason, as Kubernetes does it. One check alone is at `/readyz/<name>`.

A warning is listed too and makes nothing unready: what one object's owner can cause must not take a server out of service. Probes
are open to everybody, so a warning counts and never names objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastness.http import Answer

TEXT = b"text/plain; charset=utf-8"
Check = Callable[[], str]


class Health:
    """The checks of one process; a check returns what is wrong, or nothing."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {"ping": lambda: ""}
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
        return {name: text for name, check in self._warnings.items() if (text := check())}

    def problems(self, *, ready: bool) -> Mapping[str, str]:
        """Every check with what is wrong, empty when it is well."""
        return {name: check() for name, check in self._checks.items() if ready or name not in self._only_ready}

    def answer(self, probe: str, single: str, *, verbose: bool) -> Answer | None:
        """The answer of a probe (`healthz`, `livez`, `readyz`), or of one of its checks; None: no such check."""
        ready = probe != "livez"
        results, warnings = self.problems(ready=ready), self.warnings() if ready else {}
        if single:
            if single not in results and single not in self._warnings:
                return None
            results, warnings = (
                {name: text for name, text in checks.items() if name == single} for checks in (results, warnings)
            )
        failed = [name for name, problem in results.items() if problem]
        if not failed and not warnings and not verbose:
            return Answer(200, b"ok", TEXT)
        lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in results.items()]
        lines += [f"[!]{name} warning: {text}" for name, text in warnings.items()]
        lines.append(f"{probe} check {'failed' if failed else 'passed'}\n")
        return Answer(500 if failed else 200, "\n".join(lines).encode(), TEXT)
