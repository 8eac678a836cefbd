"""What the server itself does to objects of a kind, beside their schema.

    defaults.py   What Kubernetes fills in where a client left a native object open
    natives.py    Strategies of native kinds: the table, and the functions that fill in what Kubernetes fills in
    rules.py      What Kubernetes refuses in native objects beyond their schema
    strategy.py   The shape of a strategy: a row of data with four small functions
    workloads.py  Defaults of pods and of the kinds that make pods

Kubernetes calls this a strategy: which names are allowed, which fields the server fills in on create, which it protects on
update, what it checks that a schema cannot say. Custom kinds share one strategy; native kinds have rows in a table, most of them
only data.
"""

from fastness.apiserver.strategies.natives import NATIVE
from fastness.apiserver.strategies.strategy import Preparation, Strategy
from fastness.kinds.kind import Kind

CUSTOM = Strategy(generation=True, unconditional=False, bare_finalizers=True)
_PLAIN = Strategy()


def strategy_of(kind: Kind) -> Strategy:
    """The strategy of a kind."""
    if not kind.native:
        return CUSTOM
    return NATIVE.get((kind.group, kind.plural), _PLAIN)


__all__ = ["CUSTOM", "Preparation", "Strategy", "strategy_of"]
