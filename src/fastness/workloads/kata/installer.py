"""The two ways of bringing nodes there, as the state machine sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fastness.workloads.kata.eligibility import Asked
from fastness.workloads.kata.gates import DeploymentMode
from fastness.workloads.kata.inputs import Action, Ensure, Object, Ref, World
from fastness.workloads.kata.progress import NodeLists


class Way(Protocol):
    """Brings nodes to the runtime and back; all of it pure."""

    @property
    def mode(self) -> DeploymentMode:
        """Which way it is."""

    def objects(self, world: World, config: Object, asked: Asked) -> list[Ensure]:
        """The objects that must be there while the runtime is wanted; raises Refused."""

    def marks(self, world: World, asked: Asked, chosen: Sequence[str]) -> list[Action]:
        """What must change on nodes so that the chosen ones, and no others, get the runtime; and what that makes superfluous."""

    def lists(self, world: World, asked: Asked, chosen: Sequence[str]) -> NodeLists:
        """Where every node is."""

    def is_done(self, world: World, asked: Asked, chosen: Sequence[str], lists: NodeLists) -> bool:
        """Whether every chosen node has the runtime, and no other."""

    def leave(self, world: World, asked: Asked) -> list[Action]:
        """What makes every node lose the runtime."""

    def is_gone(self, world: World) -> bool:
        """Whether what asks nodes to have the runtime is gone."""

    def remains(self, world: World) -> list[Ref]:
        """What may go when no node has the runtime any more."""
