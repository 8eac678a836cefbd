"""One live control plane for all tests with kubectl; every test uses names of its own."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.live import KUBECTL, Live, Outcome
from tests.patience import PATIENCE


@dataclass
class Kubectl:
    """kubectl in one namespace: `ok` for what must work, `refused` for what must not."""

    live: Live
    namespace: str = "default"
    binary: Path = KUBECTL

    def __call__(self, *words: str, stdin: Any = None, **env: str) -> Outcome:
        """Run it, however it ends."""
        return self.live.kubectl("-n", self.namespace, *words, stdin=stdin, binary=self.binary, **env)

    def ok(self, *words: str, stdin: Any = None, **env: str) -> Outcome:
        """Run it; it must succeed."""
        outcome = self(*words, stdin=stdin, **env)
        assert outcome.code == 0, f"kubectl {' '.join(words)}: {outcome.out}{outcome.err}"
        return outcome

    def refused(self, *words: str, stdin: Any = None, **env: str) -> str:
        """Run it; it must fail. Returns what it complained about."""
        outcome = self(*words, stdin=stdin, **env)
        assert outcome.code != 0, f"kubectl {' '.join(words)} succeeded: {outcome.out}"
        return outcome.err


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A control plane for the whole run."""
    with Live.start(tmp_path_factory.mktemp("live")) as running:
        yield running


_numbers = itertools.count(1)


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"t{next(_numbers)}"


@pytest.fixture(scope="session")
def admin(live: Live) -> Iterator[httpx.Client]:
    """The administrator without kubectl, for what a test only prepares."""
    trust = ssl.create_default_context(cafile=str(live.state / "pki" / "ca.crt"))
    trust.load_cert_chain(str(live.state / "pki" / "admin.pem"))
    with httpx.Client(base_url=live.url, verify=trust, trust_env=False, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def kubectl(live: Live, admin: httpx.Client, unique: str) -> Kubectl:
    """kubectl in a fresh namespace that is called as `unique` says."""
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}}
    admin.post("/api/v1/namespaces", json=made).raise_for_status()
    return Kubectl(live, unique)
