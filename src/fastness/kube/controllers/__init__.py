"""What every controller shares.

    controller.py  A controller: declarations and one function
    fenced.py      A `Cluster` that refuses writes which nobody declared, or which come after the lease was lost
    leadership.py  Leader election by Lease: one process writes, the others wait
    misplaced.py   Objects that do not count where they are: their owners are told, and nothing else comes of them
    not_acted_on.py  Objects that ask for what nothing acts on: they say so themselves
    queue.py       A queue of keys, each at most once
    reads.py       Which fields of an object a loop reads, and which of them a change has touched
    runner.py      Runs controllers: informers feed queues, workers empty them
    statuses.py    Writes of statuses that several loops share: only over what was read

A `Controller` declares what it reads and writes and reconciles one key at a time; the `Runner` gives it informers, a queue
with one place per key, bounded workers, retries with jitter, and a supervised life; `Leadership` makes sure that only one
process writes.

* Level-triggered: a reconcile sees the state, not the event. Doing it twice changes nothing (a property test proves it for
  each).
* One key is never worked on by two workers at once.
* A reconcile that raises is logged, counted and tried again later, later each time; the controller goes on.
* Shutdown is structured: workers finish or are cancelled, nothing is left running.
"""

from fastness.kube.controllers.controller import Controller, Done, Source
from fastness.kube.controllers.leadership import LeaderSettings, Leadership, LostLease
from fastness.kube.controllers.queue import WorkQueue
from fastness.kube.controllers.runner import Runner

__all__ = [
    "Controller",
    "Done",
    "LeaderSettings",
    "Leadership",
    "LostLease",
    "Runner",
    "Source",
    "WorkQueue",
]
