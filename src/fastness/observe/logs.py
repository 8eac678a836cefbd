"""Structured logs: readable on a terminal, one JSON object per line otherwise.

A line is an event name out of a closed list and named values: `_log.info("store.opened", revision=7)`. The list (`EVENTS`)
is what alerts and runbooks refer to; an event that is not in it is a defect that a test finds. Values whose type hides
itself (secrets) stay hidden: a line uses `str()` of a value and nothing else. A line is one line: what a stranger sent cannot
end it or speak to the terminal. Errors of the libraries below us come as `library.failed`; their warnings, which strangers can
cause at will, do not come at all.

The correlation id is one value that follows a request through logs, audit lines and the objects that it causes.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO, Any

EVENTS: Mapping[str, str] = {
    "agent.left_over": "a machine came up well, and what it could fall back to could not be dropped",
    "agent.degraded": "a machine is not where its config says; the reason is on its node",
    "agent.interrupted": "the API refused or could not answer an agent; it tries again after a pause",
    "agent.others_brought_back": "files of other operators that a boot did not carry over were written again",
    "agent.others_not_kept": "files of other operators are too large, too many or no files: a boot with another /etc loses them",
    "agent.certificate": "a certificate of the node was not renewed; the next proof names another key",
    "agent.certificate-renewed": "a certificate of the node was renewed, with a key that the proof named",
    "agent.refused": "a machine proved itself again and was refused; it tries again at the interval",
    "agent.trial": "a machine could not look at, or not keep, the system that it booted once; the next boot is the one before",
    "agent.trust": "what a machine has beside its config could not be fetched or written; it tries again after a pause",
    "agent.unpinned": "a node could not pull or pin images of its PinnedImageSets; it tries again after a pause",
    "agent.unnoted": "a machine could not keep where its broker is; its next boot asks at the old address",
    "agent.unproved": "a machine could not make its evidence; it tries again after a pause",
    "agent.unwatched": "files cannot be watched; drift is found by the regular look at everything",
    "audit.failed": "audit lines cannot be written; said once until they can again",
    "audit.write": "a write to the API and what became of it",
    "broker.refused": "the key broker refused somebody; the code says why",
    "broker.unavailable": "the key broker could not do its work: the cluster, the record or a key failed it",
    "build.image_left": "the image of a deleted build stays in its registry: it could not be deleted there",
    "build.log_not_kept": "the log of a build could not be written to its ConfigMap; the build goes on",
    "build.pull_credential": "the credential with which proven nodes of a pool pull its image was given, or taken away",
    "build.pushed": "an image was built for a pool and is in its registry, by this digest",
    "build.transfer": "an image could not be pulled for a build, or not be pushed after it; it is tried again",
    "certificates.failed": "a listener could not take a new certificate; what it shows stays, and it is tried again",
    "certificates.waiting": "a door waits for its certificate: the controllers issue it, so they must be running",
    "clientca.damaged": "the authorities of clients that the API server publishes cannot be read; the last good ones count on",
    "clientca.none": "the API server's authorities of clients cannot be had: no node gets configs for its certificate",
    "cluster.certificate_unusable": "the renewed client certificate could not be read or used; the one before is shown on",
    "cluster.insecure": "the API server's certificate is not checked: anybody may be at the other end",
    "cluster.token_unreadable": "the file with the token could not be read; the last token is used on",
    "collateral.untold": "what documents of vendors are at hand could not be told to the cluster; tried again",
    "configserver.lacks": "machines of pools without attestation get no config: their kubeconfig needs what is not known",
    "configserver.token_refused": "a machine was told to come again: there was no bootstrap token for it, and the error says why",
    "configserver.unavailable": "the config server could not answer gate, broker or a node: the cluster failed it",
    "controller.failed": "a reconcile raised; the key is tried again later",
    "controller.started": "a controller has synced what it reads and works now",
    "controller.stopped": "a controller has ended",
    "door.in-touch": "the caches of a door follow the cluster again; it releases as before",
    "door.out-of-touch": "a door cannot know what holds now, because its caches hear nothing; it releases nothing",
    "enrol.interrupted": "a machine could not be enrolled because the cluster did not answer; it tries again",
    "enrol.unrecorded": "a machine was not enrolled because the record cannot be written",
    "event.lost": "an event could not be written; what it tells of is on the record",
    "gate.refused": "the gate refused somebody; the code says why",
    "gate.unavailable": "the gate could not do its work: the cluster or the record failed it",
    "image.not_vouched": "a standing approval passed over an image that the controllers did not push for its pool",
    "informer.interrupted": "a watch failed; it goes on after a pause",
    "informer.relisted": "a watch ended in a way that needs a new list",
    "kata.unserved": "an object of the runtime was not made, because the cluster does not serve its kind",
    "keys.not-renewed": "keys could not be renewed or published; tried again soon",
    "keys.unreadable": "published keys cannot be read; the last good ones are used on",
    "leader.acquired": "this process holds the lease",
    "leader.lost": "this process lost the lease and stopped writing",
    "library.failed": "a library that we run on reported an error of its own",
    "listener.full": "no connection can be accepted now: the process has no descriptor left; tried again in a moment",
    "machine.crashed": "the agent of a virtual machine met a defect; it is started again",
    "machine.failed": "a virtual machine could not boot or work; it tries again",
    "machine.known": "a virtual machine found its node in the cluster",
    "machine.polling": "the kernel gives no inotify; virtual machines look for drift at an interval",
    "machine.refused": "a virtual machine was refused for good; it is switched on again after a while",
    "machine.waiting": "a virtual machine waits for the first config of its pool",
    "object.set-aside": "one object cannot be read, or something fails on it; it is left out and everything else goes on",
    "object.usable": "an object that was set aside can be used again, or is gone",
    "overlay.unusable": "the NodeOverlays for a machine cannot be merged; the machine waits",
    "people.unreachable": "the identity provider cannot be asked; its keys of before count on, and it is tried again",
    "pki.renewed": "a certificate was made or renewed",
    "policy.exceeded": "the policy of a user gave no answer within its bounds; it is not asked again for a while",
    "record.alarm": "a batch of the record is missing, does not fit its predecessor or is not by its door; somebody may forge",
    "record.person-unknown": "an entry about a person's act was written without the person, because the act could not be read",
    "record.restarted": "the record goes on under a new name, because a person said so",
    "record.stopped": "nothing is added to the record: it does not continue what was signed of it before",
    "registries.refused": "something that an object says about registries is not carried out",
    "release.unknown": "a release is withheld: the API did not answer whether its machine is still trusted",
    "request.failed": "a handler raised something unexpected",
    "server.ready": "all listeners accept",
    "server.stopping": "shutdown has begun",
    "simulator.hung_up": "whoever asked the simulator did not wait for the answer",
    "simulator.unannounced": "the simulated vendor could not announce new documents; tried again in a minute",
    "store.opened": "the state directory is open",
    "store.closed": "the state directory is closed",
    "streams.unreadable": "streams of operating system images cannot be read; it is tried again after a pause",
    "ticket.uncounted": "uses of a ticket without a limit could not be written; they are kept for the next time",
    "tpm.authority_unreadable": "an entry of the ConfigMap tpm-authorities is no certificate and was left out",
    "vault.rotated": "the vault key that brokers share was turned, and nothing is sealed with the one before",
    "vault.rotating": "somebody asked for a new vault key; what is sealed is sealed anew",
    "vault.unreadable": "something that is kept opens with no vault key that there is; it was lost before",
    "vault.waits": "the vault key could not be read or turned now; it is tried again",
    "vms.boot": "a real machine was switched on",
    "vms.failed": "real machines could not be made or booted; the rest goes on without them",
    "vms.image": "the image of real machines is built and approved",
    "vms.off": "a real machine powered off; it is switched on again after a while, its console is kept",
    "vms.says": "a real machine said on its serial port how far it is",
    "webhook.contested": "somebody else keeps changing the configuration of the webhook; it is written more slowly",
    "webhook.registered": "the configuration of the webhook was written: it was missing, changed or had an older authority",
    "webhook.author_unrecorded": "who wrote a layer or a public config could not be written down; the write went on",
    "webhook.unavailable": "a review was refused because the cluster did not answer",
    "webhook.unregistered": "the configuration of the webhook could not be written; tried again",
    "witness.cosigned": "this witness cosigned the checkpoint of a record",
    "witness.declined": "this witness refused a checkpoint that its log signed: it may prove a second history",
    "witness.failed": "a witness did not cosign the record of this cluster",
    "witness.interrupted": "the cluster did not answer before witnesses could be asked; they are asked again",
    "witness.memory": "the memory of this witness cannot be read or written",
}
_ROOT = "fastness"
_LIBRARIES = ("_granian", "asyncio", "uvicorn")
MAX_VALUE = 2000


_correlation: ContextVar[str] = ContextVar("correlation", default="")


def begin_correlation(value: str) -> str:
    """Use this id from here on, in this task and what it starts."""
    _correlation.set(value)
    return value


def current_correlation() -> str:
    """The id of what is being done now; empty outside of any request or reconcile."""
    return _correlation.get()


class Logger:
    """Writes events of one part of the product."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{_ROOT}.{name}")

    def debug(self, event: str, **values: Any) -> None:
        """For those who look for something."""
        self._write(logging.DEBUG, event, values)

    def info(self, event: str, **values: Any) -> None:
        """What happened."""
        self._write(logging.INFO, event, values)

    def warning(self, event: str, **values: Any) -> None:
        """What somebody should look at."""
        self._write(logging.WARNING, event, values)

    def error(self, event: str, **values: Any) -> None:
        """What somebody must look at."""
        self._write(logging.ERROR, event, values)

    def exception(self, event: str, **values: Any) -> None:
        """A defect, with its traceback."""
        self._write(logging.ERROR, event, values, exc_info=True)

    def _write(self, level: int, event: str, values: Mapping[str, Any], *, exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            texts = {key: str(value)[:MAX_VALUE] for key, value in values.items()}
            self._logger.log(
                level, event, extra={"values": texts, "correlation": current_correlation()}, exc_info=exc_info
            )


def logger(name: str) -> Logger:
    """The logger of one part of the product."""
    return Logger(name)


def _event(record: logging.LogRecord) -> tuple[str, Mapping[str, str]]:
    """Name and values of a line; a record of a library is an event of ours that carries its message."""
    if record.name.partition(".")[0] == _ROOT:
        return record.getMessage(), getattr(record, "values", {})
    return "library.failed", {"message": record.getMessage().strip()[:MAX_VALUE]}


def _one_line(text: str) -> str:
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


class _Terminal(logging.Formatter):
    """`12:00:01 info  store.opened  revision=7`"""

    def format(self, record: logging.LogRecord) -> str:
        event, values = _event(record)
        details = " ".join(f"{key}={_one_line(value)}" for key, value in values.items())
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        line = f"{moment} {record.levelname.lower():<7} {event}  {details}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    """One object per line."""

    def format(self, record: logging.LogRecord) -> str:
        event, values = _event(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": event,
            "logger": record.name.removeprefix(f"{_ROOT}."),
        }
        if correlation := getattr(record, "correlation", ""):
            line["correlation"] = correlation
        line.update({key: value for key, value in values.items() if key not in line})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(*, level: str = "info", stream: IO[str] | None = None, as_json: bool | None = None) -> None:
    """Send logs to a stream; without a choice, a terminal gets readable lines and everything else JSON."""
    target = stream or sys.stderr
    use_json = as_json if as_json is not None else not target.isatty()
    handler = logging.StreamHandler(target)
    handler.setFormatter(_Json() if use_json else _Terminal())
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers[:] = [handler]
        library.setLevel(logging.ERROR)
        library.propagate = False
