"""Conversations by chance: three managers who create, update and apply whatever fits the schema of `script.py`.

Everything follows from the seed, so that a difference can be played again. Values come from small sets: managers shall meet at
the same fields, with the same values and with others.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.component.apiserver.fields.script import JsonObject, Step, widget

WORDS = ("a", "b", "c")
PORTS = [(port, protocol) for port in (1, 2, 10) for protocol in ("TCP", "UDP", "")]
MANAGERS = ("m1", "m2", "m3")


class Chance:
    """A source of requests about one object."""

    def __init__(self, seed: int, name: str) -> None:
        self._dice = Random(seed)
        self._name = name

    def step(self, exists: bool) -> Step:
        """The next request."""
        manager = self._dice.choice(MANAGERS)
        if self._dice.random() < 0.65:
            body = widget(self._name, self.spec(), self.meta())
            return Step("by chance", "apply", manager, body, force=self._dice.random() < 0.5)
        if not exists:
            return Step("by chance", "create", manager, widget(self._name, self.spec(), self.meta()))
        spec, keep = self.spec(), self._dice.random() < 0.5
        return Step(
            "by chance",
            "update",
            manager,
            lambda obj: {**obj, "spec": {**obj.get("spec", {}), **spec} if keep else spec},
        )

    def meta(self) -> JsonObject:
        """Labels and annotations, now and then."""
        return {name: self._words(1) for name in ("labels", "annotations") if self._dice.random() < 0.2}

    def spec(self) -> JsonObject:
        """Some of the fields of a widget."""
        dice = self._dice
        parts: JsonObject = {
            "replicas": dice.randint(0, 2),
            "image": dice.choice(WORDS),
            "args": [dice.choice(WORDS) for _ in range(dice.randint(0, 2))],
            "tags": dice.sample((*WORDS, "d", "e"), dice.randint(0, 4)),
            "ports": self._ports(),
            "labels": self._words(),
            "selector": self._words(),
            "nested": dice.choice([{"a": "x"}, {"a": "y"}, {"deep": {"c": "x"}}, {"a": "x", "deep": {"c": "y"}}]),
            "free": {word: self._anything() for word in self._some(WORDS)},
            "half": {word: self._anything() for word in self._some(("unknown", "other"))},
        }
        return {name: parts[name] for name in parts if dice.random() < 0.4}

    def _ports(self) -> list[JsonObject]:
        ports: dict[tuple[int, str], JsonObject] = {}
        for port, protocol in self._some(PORTS):
            item: JsonObject = {"port": port, **({"protocol": protocol} if protocol else {})}
            if self._dice.random() < 0.5:
                item["name"] = self._dice.choice(WORDS)
            if self._dice.random() < 0.4:
                item["limits"] = {
                    name: self._dice.randint(1, 2) for name in ("rate", "burst") if self._dice.random() < 0.7
                }
            ports.setdefault((port, protocol or "TCP"), item)
        return list(ports.values())

    def _words(self, least: int = 0) -> JsonObject:
        return {word: self._dice.choice(WORDS) for word in self._some(WORDS, least)}

    def _some(self, of: Any, least: int = 0) -> list[Any]:
        return self._dice.sample(of, self._dice.randint(least, min(len(of), 4)))

    def _anything(self, depth: int = 0) -> Any:
        chance = self._dice.random()
        if depth > 2 or chance < 0.5:
            return self._dice.choice([1, 2, True, "x", "y", 1.5])
        if chance < 0.7:
            return [self._anything(depth + 1) for _ in range(self._dice.randint(0, 2))]
        return {word: self._anything(depth + 1) for word in self._some(WORDS)}
