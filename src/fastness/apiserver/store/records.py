"""What the store holds: records, the changes that make them, the log entries that remember them.

* A `Record` is immutable and shared by everyone who reads it. Its body is opaque here: JSON as the REST engine encoded it,
  with `metadata.resourceVersion` equal to `revision`.
* Every `Change` consumes its own revision; the changes of one write are consecutive and become visible together.
* A `LogEntry` knows the record before it, so that watchers see an object enter or leave a selector and lists can be taken
  back to an older revision.

The values are msgspec structs outside the garbage collector's sight (`gc=False`, they cannot form cycles): a hundred
thousand of them cost no collection time, and one is made in a tenth of a dataclass's time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from fastness.kube.port import EventType

# What is encrypted at rest: Secrets, and every kind where people and controllers put passwords, tokens and keys all the same:
# files and units of machine configs (rendered ones too), config maps, the environment and init-data of pods and their templates.
SEALED_KINDS: Final = frozenset(
    {
        ("", "secrets"),
        ("", "configmaps"),
        ("", "pods"),
        ("", "podtemplates"),
        ("", "replicationcontrollers"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("apps.openshift.io", "deploymentconfigs"),
        ("batch", "jobs"),
        ("batch", "cronjobs"),
        ("machineconfiguration.openshift.io", "machineconfigs"),
        ("machineconfiguration.openshift.io", "controllerconfigs"),
        ("fastness.dev", "nodeoverlays"),
    }
)


class Key(NamedTuple):
    """Where a record lives; `namespace` is empty for cluster scope."""

    group: str
    plural: str
    namespace: str
    name: str


class Record(msgspec.Struct, frozen=True, gc=False):
    """One object at one revision; `created` is the revision that first wrote it."""

    key: Key
    revision: int
    created: int
    body: bytes


class WriteStep(msgspec.Struct, frozen=True, gc=False):
    """One step of a write. `body` None deletes, and `last` is then the final state that watchers are told.

    `expect` is the revision that must be the head: 0 = must not exist, None = whatever there is.
    """

    key: Key
    body: bytes | None
    expect: int | None = None
    last: bytes = b""


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """One change that happened. The record of a DELETED entry has the delete's revision and the final body."""

    type: EventType
    record: Record
    previous: Record | None

    @property
    def revision(self) -> int:
        """The revision of the change."""
        return self.record.revision


class Range(msgspec.Struct, frozen=True, gc=False):
    """Part of a collection in order of namespace and name, consistent at `revision`; `remaining` records follow."""

    records: list[Record]
    revision: int
    remaining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Bounds. The log is bounded by entries, bytes and age; writes that wait for the disk by number and bytes.

    Bounds of the log are looked after whenever something is written: a store that nobody writes to forgets nothing.
    `max_bytes` is a quota for the file; `reserve_bytes` are kept back, on the disk and of the quota, for deletions when it is
    full (at least what the write-ahead log grows to between two checkpoints); `compact_every` and `checkpoint_bytes` say when
    housekeeping is worth its commit.
    """

    log_entries: int = 50_000
    log_bytes: int = 48 * 1024 * 1024
    # Three times what kube-apiserver keeps of etcd's history (--etcd-compaction-interval, five minutes): a watcher that was cut
    # off for less need not list again.
    log_seconds: float = 900.0
    pending_changes: int = 8_192
    pending_bytes: int = 128 * 1024 * 1024
    batch_changes: int = 512
    batch_bytes: int = 8 * 1024 * 1024
    statement_rows: int = 128
    compact_every: int = 1_024
    checkpoint_bytes: int = 8 * 1024 * 1024
    max_bytes: int | None = None
    reserve_bytes: int = 0
    max_body: int = 32 * 1024 * 1024
    sealed_kinds: frozenset[tuple[str, str]] = SEALED_KINDS


@dataclass(frozen=True, slots=True)
class Stats:
    """What the metrics show."""

    revision: int
    compacted: int
    objects: int
    log_entries: int
    log_bytes: int
    pending_changes: int
    watchers: int
    writes: int
    commits: int
    failures: int


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds."""

    revision: int
    objects: int
    size: int


Identity = Mapping[str, str]
