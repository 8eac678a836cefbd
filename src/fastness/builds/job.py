"""The Job of a build: what it is made of, and how it stands.

    init container pull     network, the login of the base's registry          writes the base into a directory
    init container build    neither; namespaces of its own                     the sandbox of decision 88, and nothing else
    container push          network, the login of the registry of images       reads what the build left as a stranger's

No container has a token of the cluster. How each ended it says in its termination message; what was printed is its log.

    stage(pods)             pulling, building or pushing
    outcome(job, pods)      the image by digest, a failure with its reason, or None while it runs
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

from fastness.builds.build_objects import BUILD_LABEL, label_of, metadata_of, named
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata

Object = Mapping[str, Any]
PULL, BUILD, PUSH = "pull", "build", "push"
STEPS: Final = (PULL, BUILD, PUSH)
CONTEXT_KEY: Final = "context.tar.gz"
CONTAINERFILE_KEY: Final = "Containerfile"
WAY_KEY: Final = "way.json"
IMAGE, LAYERS = "image", "layers"
"""In the document of a step: the way to the image that it is about, and what the layers on top of the base are called."""
MOST_CONTEXT: Final = 1_000_000
"""What a ConfigMap can hold, nearly."""
RETRIES: Final = 3
WORK: Final = "/work"
KNOWN: Final = "/known"
ORDER: Final = "/order"
WAY: Final = "/way"
GRACE_SECONDS: Final = 10
_JOB_NAME: Final = "batch.kubernetes.io/job-name"
_VOLUMES: Final = {PULL: ("base", True), BUILD: ("context", False), PUSH: ("final", True)}


class Exit(IntEnum):
    """How a container of a build ends; what is no use to try again ends the Job at once."""

    DONE = 0
    FAILED = 1
    TRANSFER = 3
    NO_SANDBOX = 4


@dataclass(frozen=True, slots=True)
class JobSettings:
    """How pods of builds are made, as an administrator says it.

    `user_namespaces`: pods get users of their own, so nothing in them is root of the node. Without it the container that builds
    is privileged, which it needs to make a sandbox at all.
    """

    image: str
    user_namespaces: bool = True
    pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 3600
    memory: str = "4Gi"
    disk: str = "40Gi"


def job_name(build: str) -> str:
    """The Job of a build."""
    return named("build", build)


def job(build: str, uid: str, settings: JobSettings) -> JsonObject:
    """The Job, as it is made."""
    meta = metadata_of(job_name(build), build, uid)
    stops = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [Exit.FAILED, Exit.NO_SANDBOX]}}
    gone = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
        "spec": {
            "backoffLimit": RETRIES, "completions": 1, "parallelism": 1, "activeDeadlineSeconds": settings.seconds,
            "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [stops, gone]},
            "template": {"metadata": {"labels": {BUILD_LABEL: label_of(build)}}, "spec": _pod(build, settings)},
        },
    }  # fmt: skip


def _pod(build: str, settings: JobSettings) -> JsonObject:
    pull, make, push = (_container(step, settings) for step in STEPS)
    return {
        "restartPolicy": "Never", "automountServiceAccountToken": False, "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS, "hostUsers": not settings.user_namespaces,
        "initContainers": [pull, make], "containers": [push],
        "nodeSelector": dict(settings.node_selector),
        "imagePullSecrets": [{"name": name} for name in settings.pull_secrets],
        "volumes": [
            {"name": "work", "emptyDir": {"sizeLimit": settings.disk}},
            {"name": "known", "emptyDir": {"sizeLimit": "1Mi"}},
            *({"name": step, **_source(step, build)} for step in STEPS),
        ],
    }  # fmt: skip


def _source(step: str, build: str) -> JsonObject:
    """What one container alone is given: a way to a registry, or what is built."""
    prefix, secret = _VOLUMES[step]
    name = named(prefix, build)
    return {"secret": {"secretName": name, "defaultMode": 0o400}} if secret else {"configMap": {"name": name}}


def _container(step: str, settings: JobSettings) -> JsonObject:
    mounts = [
        {"name": "work", "mountPath": WORK},
        {"name": step, "mountPath": ORDER if step == BUILD else WAY, "readOnly": True},
    ]
    if step != BUILD:
        # What the pull remembers of the base: the build must not be able to say it.
        mounts.append({"name": "known", "mountPath": KNOWN, **({"readOnly": True} if step == PUSH else {})})
    return {
        "name": step, "image": settings.image, "args": [step], "volumeMounts": mounts,
        "terminationMessagePolicy": "File", "securityContext": _security(step, settings),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": settings.memory}},
    }  # fmt: skip


def _security(step: str, settings: JobSettings) -> JsonObject:
    """What a container may: transfers read and write files, whoever they belong to; the one that builds makes namespaces."""
    if step != BUILD:
        return {
            "runAsUser": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}, "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
    if not settings.user_namespaces:
        return {"runAsUser": 0, "privileged": True, "readOnlyRootFilesystem": True}
    needed = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SYS_ADMIN"]
    return {
        "runAsUser": 0, "readOnlyRootFilesystem": True, "procMount": "Unmasked",
        "capabilities": {"drop": ["ALL"], "add": needed}, "seccompProfile": {"type": "Unconfined"},
    }  # fmt: skip


# ------------------------------------------------------------ how it stands


class JobOutcome(NamedTuple):
    """How a Job ended: with an image, or with a reason; `step` is where it failed."""

    image: str = ""
    reason: str = ""
    step: str = ""


def belongs_to(existing: Object, uid: str) -> bool:
    """Whether a Job was made for the build of this uid, and not for an earlier one of the same name."""
    return any(owner.get("uid") == uid for owner in metadata(existing).get("ownerReferences") or ())


def pods_selector(build: str) -> str:
    """The labels of the pods of a build."""
    return f"{_JOB_NAME}={job_name(build)}"


def newest(pods: Iterable[Object]) -> Object | None:
    """The pod that was tried last."""
    return max(pods, key=_age, default=None)


def _age(pod: Object) -> tuple[str, str]:
    return str(metadata(pod).get("creationTimestamp") or ""), str(metadata(pod)["name"])


def started(pod: Object) -> list[str]:
    """The containers of a pod that have a log, in their order."""
    states = _states(pod)
    return [step for step in STEPS if states.get(step, {}).keys() & {"running", "terminated"}]


def waits_for(pod: Object) -> str:
    """Why a pod does not begin, in Kubernetes' words; empty while it runs."""
    for step, state in _states(pod).items():
        waiting = state.get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return f"{step}: {waiting.get('reason')}: {waiting.get('message') or ''}".rstrip(": ")
    conditions = (pod.get("status") or {}).get("conditions") or ()
    unplaced = next(
        (each for each in conditions if each.get("type") == "PodScheduled" and each.get("status") == "False"), None
    )
    return f"{unplaced.get('reason')}: {unplaced.get('message')}" if unplaced else ""


def outcome(current: Object, pods: Sequence[Object]) -> JobOutcome | None:
    """How a Job ended; None while it goes on."""
    ended = {
        str(each.get("type")): each for each in (current.get("status") or {}).get("conditions") or ()
        if each.get("status") == "True"
    }  # fmt: skip
    if "Complete" in ended:
        messages = [_message(pod, PUSH) for pod in pods]
        image = next((str(each["image"]) for each in messages if each.get("image")), "")
        return JobOutcome(image) if image else JobOutcome(reason="the Job ended well and named no image")
    if "Failed" not in ended:
        return None
    pod = newest(pods)
    step, text = failure(pod) if pod is not None else ("", "")
    why = str(ended["Failed"].get("message") or ended["Failed"].get("reason") or "the Job failed")
    return JobOutcome(reason=text or f"{why}{f' ({waits_for(pod)})' if pod and waits_for(pod) else ''}", step=step)


def failure(pod: Object) -> tuple[str, str]:
    """The container of a pod that failed, and what it says about it."""
    for step, state in _states(pod).items():
        end = state.get("terminated") or {}
        if end and end.get("exitCode"):
            error = str(_message(pod, step).get("error") or "")
            return step, error or f"{step} ended with {end.get('exitCode')} ({end.get('reason') or 'no reason'})"
    return "", str((pod.get("status") or {}).get("message") or "")


def _states(pod: Object) -> dict[str, Object]:
    status = pod.get("status") or {}
    listed = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return {str(each.get("name")): each.get("state") or {} for each in listed}


def _message(pod: Object, step: str) -> Mapping[str, Any]:
    text = str((_states(pod).get(step, {}).get("terminated") or {}).get("message") or "")
    try:
        message = json.decode(text.encode())
    except FormatError:
        return {}
    return message if isinstance(message, dict) else {}
