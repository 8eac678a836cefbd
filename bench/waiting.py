"""How long a second caller waits while somebody else sends the ten heaviest requests that both servers take.

The second caller asks for one small object again and again, on a connection and in a thread of its own. A round sends each heavy
request once, to ours and to the peer in turn, and its figure is the longest wait of all ten. The objects are as large as etcd
takes them; ours would take twice that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, Final

import httpx
import orjson

from bench.figures import Progress, Single, Spread
from bench.targets import Target, TargetError

MAPS: Final = "/api/v1/namespaces/default/configmaps"
CONFIGS: Final = "/apis/machineconfiguration.openshift.io/v1/machineconfigs"
SMALL: Final = "/api/v1/namespaces/default"
KEYS: Final = 40_000
FILES: Final = 14_000
SETTLE_SECONDS: Final = 0.2
JSON: Final = "application/json"
APPLY, MERGE, STEPS, STRATEGIC, YAML = (
    "application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json",
    "application/strategic-merge-patch+json", "application/yaml",
)  # fmt: skip
Request = tuple[str, str, bytes, str]


def wide(name: str) -> dict[str, Any]:
    """A ConfigMap that is nothing but names: work on an object goes by them."""
    data = {f"k{number:06d}": "" for number in range(KEYS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def machine_config() -> dict[str, Any]:
    """A MachineConfig of many files."""
    files = [{"path": f"/etc/f{number}", "contents": {"source": "data:,a"}, "mode": 420} for number in range(FILES)]
    spec = {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}}
    # No pool selects it: what is measured is the API, not what controllers make of it.
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "heavy-many", "labels": {"machineconfiguration.openshift.io/role": "nobody"}}, "spec": spec,
    }  # fmt: skip


def heaviest() -> list[Request]:
    """Ten requests, each as heavy as its kind can be."""
    first, second = (orjson.dumps(wide(name)) for name in ("heavy-a", "heavy-b"))
    lines = "".join(f"  k{number:06d}: ''\n" for number in range(KEYS // 2))
    as_yaml = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: heavy-c, namespace: default}}\ndata:\n{lines}"
    steps = orjson.dumps([{"op": "add", "path": "/data/two", "value": "more"}])
    applied = f"{MAPS}/heavy-b?fieldManager=bench"
    return [
        ("POST", MAPS, first, JSON),
        ("PATCH", applied, second, APPLY),
        ("PATCH", applied, second, APPLY),
        ("PATCH", f"{MAPS}/heavy-a", orjson.dumps({"data": {"one": "more"}}), MERGE),
        ("PATCH", f"{MAPS}/heavy-a", steps, STEPS),
        ("PATCH", f"{MAPS}/heavy-a", orjson.dumps({"data": {"three": "more"}}), STRATEGIC),
        ("PUT", f"{MAPS}/heavy-a", first, JSON),
        ("POST", MAPS, as_yaml.encode(), YAML),
        ("POST", CONFIGS, orjson.dumps(machine_config()), JSON),
        ("DELETE", f"{MAPS}/heavy-a", b"", JSON),
    ]


LEFT: Final = (f"{MAPS}/heavy-b", f"{MAPS}/heavy-c", f"{CONFIGS}/heavy-many")


def figures(targets: Sequence[Target], say: Progress, rounds: int) -> list[Single]:
    """The longest wait, ours and the peer's, and one over the other, round by round."""
    requests = heaviest()
    waits: dict[str, list[float]] = {target.name: [] for target in targets}
    for number in range(rounds):
        for target in targets:
            say(f"waiting, round {number + 1} of {rounds}, {target.name}")
            waits[target.name].append(1000 * _longest(target, requests))
    own, *others = (waits[target.name] for target in targets)
    name = "longest wait of a second caller under the ten heaviest requests"
    made = [Single(name, Spread.of(own), "ms", peer=median(others[0]) if others else None)]
    if others:
        ratios = [mine / theirs for mine, theirs in zip(own, others[0], strict=True)]
        made.append(Single(f"{name}, over the peer's", Spread.of(ratios), "×"))
    return made


def _longest(target: Target, requests: Sequence[Request]) -> float:
    with target.client() as heavy, _second_caller(target) as waits:
        for method, path, body, kind in requests:
            answer = heavy.request(method, path, content=body, headers={"content-type": kind})
            _require(answer, f"{method} {path}")
        time.sleep(SETTLE_SECONDS)  # an answer that was due during the last request has come
        longest = max(waits)
    with target.client() as heavy:
        for path in LEFT:
            _require(heavy.delete(path), f"DELETE {path}")
    return longest


@contextmanager
def _second_caller(target: Target) -> Iterator[list[float]]:
    """Somebody who asks for a small object again and again; how long each answer took."""
    waits: list[float] = []
    over, warm = threading.Event(), threading.Event()

    def ask() -> None:
        with target.client() as client:
            client.get(SMALL)
            warm.set()
            while not over.is_set():
                begun = time.perf_counter()
                _require(client.get(SMALL), SMALL)
                waits.append(time.perf_counter() - begun)

    caller = threading.Thread(target=ask)
    caller.start()
    warm.wait()
    try:
        yield waits
    finally:
        over.set()
        caller.join()


def _require(answer: httpx.Response, what: str) -> None:
    if not answer.is_success:
        raise TargetError(f"{what}: {answer.status_code} {answer.text[:300]}")
