"""Whether a door can know what it must know before anything leaves it.

What a door may release follows from caches: machines, distrusts, policies, the cluster's own object. A cache that hears nothing
of the cluster looks like one in a cluster where nothing happens, and says of a machine what was true before. So a door asks here
first: a cache is believed while its watch is open and its last word at most 90 seconds old (`kube.informers`).

When touch is lost, and when it is back, is logged once, by whoever asks.

A cluster without our own namespace looks like one in which no machine ever enrolled and nobody was ever distrusted. So a door
that saw the namespace, and sees it go, releases nothing either (`homeless`); nor while a backup is brought back into it, when a
machine or a ticket that is not there yet would be refused for good.

`changes` counts what the rules among the caches have said. A decision that was made at one count need not be made again while it
stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.keys.home import is_restored
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import is_being_deleted
from fastness.kube.informers import Informer
from fastness.observe import logs, metrics

_log = logs.logger("touch")


class Touch:
    """The caches that one door relies on; `rules` are those whose every change may change a decision."""

    def __init__(
        self, door: str, rules: Sequence[Informer], others: Sequence[Informer] = (), home: Informer | None = None
    ) -> None:
        self._door = door
        self._home = home
        self._had_home = False
        self._informers = (*rules, *others, *([home] if home is not None else ()))
        self._was_in_touch = True
        self.changes = 0
        for informer in rules:
            informer.subscribe(self._changed)

    def _changed(self, _old: object, _new: object) -> None:
        # A count and not a time: two changes within one tick of the clock are two.
        self.changes += 1

    async def synced(self) -> None:
        """Wait until each of them has had its first state."""
        for informer in self._informers:
            await informer.synced()

    @property
    def in_touch(self) -> bool:
        """Whether all of them follow the cluster now."""
        following = all(informer.in_touch for informer in self._informers)
        if following is not self._was_in_touch:
            self._was_in_touch = following
            if following:
                _log.info("door.in-touch", door=self._door)
            else:
                _log.warning("door.out-of-touch", door=self._door, resources=self.lost)
        return following

    @property
    def homeless(self) -> bool:
        """Whether the namespace that everything of ours lives in is going, gone since it was last there, or not whole again."""
        if self._home is None:
            return False
        namespace = self._home.get("", NAMESPACE)
        # A door that starts before the namespace was made is not homeless; one that saw it go is.
        self._had_home = self._had_home or namespace is not None
        return is_being_deleted(namespace) or is_restored(namespace) if namespace is not None else self._had_home

    @property
    def lost(self) -> list[str]:
        """The resources of those that do not."""
        return [informer.resource.plural for informer in self._informers if not informer.in_touch]

    def publish(self) -> None:
        """Set the metric of the oldest of them."""
        metrics.CACHE_AGE.labels(self._door).set(max(informer.age for informer in self._informers))
