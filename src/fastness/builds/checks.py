"""What is wrong with a MachineOSConfig, told before anything is built.

    problems = checked(config, pools, secrets)       all of them; none: a build may begin

The pool must be there, and have this MachineOSConfig alone; secrets must be there, be of a registry, and name the one that is
pushed to; the place to push to must be a name with a tag; what people wrote must be a Containerfile that can be built here.
Where nodes are to pull with a credential of their own, it must be one for that registry, another than the one that pushes, and of
a pool whose nodes prove themselves.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fastness.builds import containerfile
from fastness.builds.sealing import SEALED, sealing_problem
from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.kinds.machineconfiguration.names import IMAGE_PULL, OPERATOR_NAMESPACE
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.rollout.built import config_for

Object = Mapping[str, Any]
DOCKER_CONFIG: Final = ".dockerconfigjson"
DOCKER_CFG: Final = ".dockercfg"
PUSH: Final = "renderedImagePushSecret"
PULL: Final = "baseImagePullSecret"
NODE_PULL: Final = f"metadata.annotations[{IMAGE_PULL}]"


class BuildProblem(NamedTuple):
    """One thing that is wrong: a reason for programs, the field, a sentence, and what to do."""

    reason: str
    field: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message} ({self.hint})"


def pool_of(config: Object) -> str:
    """The pool that a MachineOSConfig is for."""
    return str(((config.get("spec") or {}).get("machineConfigPool") or {}).get("name") or "")


def secret_name(config: Object, field: str) -> str:
    """The Secret that a field names; empty for none."""
    return str(((config.get("spec") or {}).get(field) or {}).get("name") or "")


def checked(
    config: Object, others: Iterable[Object], pools: Iterable[str], secrets: Mapping[str, Object | None],
    *, enforcing: bool = False,
) -> tuple[BuildProblem, ...]:  # fmt: skip
    """Everything that is wrong; `secrets` has, by field, each Secret that is named, None for one that is not there.

    `enforcing`: nodes of the pool get nothing without a proof.
    """
    named = (*_secret_problems(config, secrets), *pull_problems(config, secrets, enforcing=enforcing))
    return (*_pool_problems(config, others, pools), *named, *written(config))


def written(config: Object) -> tuple[BuildProblem, ...]:
    """What is wrong whatever else there is in the cluster."""
    return (*_push_problems(config), *_text_problems(config), *_seal_problems(config))


def _seal_problems(config: Object) -> Iterator[BuildProblem]:
    if problem := sealing_problem(config):
        place = f"metadata.annotations[{SEALED}]"
        yield BuildProblem("SealedInvalid", place, problem, 'write "true" for a sealed image, or take it away')


def _pool_problems(config: Object, others: Iterable[Object], pools: Iterable[str]) -> Iterator[BuildProblem]:
    pool, field, existing = pool_of(config), "spec.machineConfigPool.name", sorted(pools)
    if pool not in existing:
        yield BuildProblem(
            "PoolNotFound", field, f"there is no pool {pool!r}", f"there are: {', '.join(existing) or 'none'}"
        )
    first = config_for(pool, others)
    if first is not None and object_name(first).name != object_name(config).name:
        text = f"the pool has the MachineOSConfig {object_name(first).name} already"
        yield BuildProblem("PoolTaken", field, text, "a pool has one; delete the other")


def _secret_problems(config: Object, secrets: Mapping[str, Object | None]) -> Iterator[BuildProblem]:
    for field in (PUSH, PULL):
        name, place = secret_name(config, field), f"spec.{field}.name"
        if not name:
            continue
        secret = secrets.get(field)
        if secret is None:
            text = f"there is no Secret {OPERATOR_NAMESPACE}/{name}"
            make = f"kubectl -n {OPERATOR_NAMESPACE} create secret docker-registry {name} …"
            hint = f"make it: {make}, after kubectl create namespace {OPERATOR_NAMESPACE} where there is none"
            yield BuildProblem("SecretNotFound", place, text, hint)
            continue
        try:
            content = registry_credentials(secret)
            if field == PUSH and (target := _reference(config)) is not None:
                oci.credentials(content, target)
        except (FormatError, ValueError) as error:
            text = f"Secret {OPERATOR_NAMESPACE}/{name} is not of a registry: {error}"
            hint = f"its type is kubernetes.io/dockerconfigjson, with the key {DOCKER_CONFIG}"
            yield BuildProblem("SecretNotOfRegistry", place, text, hint)


def pull_problems(config: Object, secrets: Mapping[str, Object | None], *, enforcing: bool) -> Iterator[BuildProblem]:
    """What is wrong with the credential that nodes are to pull with."""
    name, place = pull_secret_name(config), NODE_PULL
    if not name:
        return
    if not enforcing:
        text = f"pool {pool_of(config)} does not enforce attestation, and the credential is for proven nodes alone"
        hint = "enforce it, or take the annotation away and put the login into the pull secret of the cluster"
        yield BuildProblem("PullSecretUnproven", place, text, hint)
    secret, target = secrets.get(NODE_PULL), _reference(config)
    if secret is None:
        text = f"there is no Secret {OPERATOR_NAMESPACE}/{name}"
        yield BuildProblem("SecretNotFound", place, text, "make it, of type kubernetes.io/dockerconfigjson")
        return
    try:
        login = oci.credentials(registry_credentials(secret), target) if target is not None else ("", "")
        push = secrets.get(PUSH)
        pushing = oci.credentials(registry_credentials(push), target) if push and target else None
    except (FormatError, ValueError) as error:
        text = f"Secret {OPERATOR_NAMESPACE}/{name} is not of a registry: {error}"
        yield BuildProblem("SecretNotOfRegistry", place, text, "see kubectl create secret docker-registry")
        return
    if login is None:
        text = f"Secret {OPERATOR_NAMESPACE}/{name} has no login for {target.registry if target else ''}"
        yield BuildProblem("PullSecretOfOtherRegistry", place, text, "it is for the registry of renderedImagePushSpec")
    elif login == pushing:
        text = "is the login that pushes: every node could replace images"
        yield BuildProblem("PullSecretPushes", place, text, "make a login that only reads")


def pull_secret_name(config: Object) -> str:
    """The Secret that nodes are to pull with; empty for none."""
    return annotations_of(config).get(IMAGE_PULL, "").strip()


def registry_credentials(secret: Object) -> bytes:
    """The content of a Secret of a registry, in today's form; raises ValueError."""
    values = secret.get("data") or {}
    try:
        if values.get(DOCKER_CONFIG):
            return base64.b64decode(str(values[DOCKER_CONFIG]), validate=True)
        if values.get(DOCKER_CFG):
            return b'{"auths":' + base64.b64decode(str(values[DOCKER_CFG]), validate=True) + b"}"
    except (binascii.Error, ValueError) as error:
        raise ValueError("its content is not base64") from error
    raise ValueError(f"it has no {DOCKER_CONFIG}")


def _reference(config: Object) -> oci.Reference | None:
    try:
        return oci.reference(push_spec(config))
    except FormatError:
        return None


def push_spec(config: Object) -> str:
    """Where the image is pushed to, as it was written."""
    return str((config.get("spec") or {}).get("renderedImagePushSpec") or "")


def _push_problems(config: Object) -> Iterator[BuildProblem]:
    field = "spec.renderedImagePushSpec"
    try:
        reference = oci.reference(push_spec(config))
    except FormatError as error:
        yield BuildProblem("PushSpecInvalid", field, str(error), "write HOST[:PORT]/REPOSITORY:TAG")
        return
    if reference.digest:
        yield BuildProblem(
            "PushSpecInvalid", field, "names a digest", "write a tag: the digest is known after the build"
        )


def _text_problems(config: Object) -> Iterator[BuildProblem]:
    for index, entry in enumerate((config.get("spec") or {}).get("containerFile") or ()):
        field = f"spec.containerFile[{index}]"
        arch = entry.get("containerfileArch", "NoArch")
        if arch != "NoArch":
            text = f"is for {arch}, and images are built for one architecture"
            yield BuildProblem("ContainerfileInvalid", f"{field}.containerfileArch", text, "write NoArch")
        for problem in containerfile.problems(str(entry.get("content") or "")):
            what, _, hint = problem.rpartition(": ")
            yield BuildProblem("ContainerfileInvalid", f"{field}.content", what, hint)
