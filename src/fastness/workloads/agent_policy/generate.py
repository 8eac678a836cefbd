"""A restrictive policy from the manifest of a workload.

The host may do what starts, watches and ends this pod, and nothing else:

* containers only with the images of the manifest, with its commands where it names them, with mounts that it asks for;
* programs beside the workload only if a probe or a hook names them;
* no other policy, no memory swapped out, nothing typed in; what the workload prints stays inside unless logs are asked for.

Where the manifest leaves the command to the image, the image decides: name it by digest. The text is in the older syntax of
Rego, which agents of all ages read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.formats import json
from fastness.workloads.agent_policy.requests import HARMLESS, PACKAGE, REQUESTS
from fastness.workloads.initdata.workload import NotAWorkload, pod_of

STANDARD_MOUNTS: Final = (
    "/dev", "/dev/mqueue", "/dev/pts", "/dev/shm",  # noqa: S108 - a mount of every container
    "/dev/termination-log", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf",
    "/proc", "/run/secrets", "/sys", "/sys/fs/cgroup", "/var/run/secrets/kubernetes.io/serviceaccount",
)  # fmt: skip
_RULES: Final = """
# The sandbox itself, and containers that the manifest names.
CreateSandboxRequest {
	not asks_for_modules
	not asks_for_hooks
}

asks_for_modules { input.kernel_modules[_] }

asks_for_hooks {
	input.guest_hook_path != ""
}

CreateContainerRequest {
	input.OCI.Annotations["io.kubernetes.cri.container-type"] == "sandbox"
	not foreign_environment
}

CreateContainerRequest {
	container := containers[_]
	input.OCI.Annotations["io.kubernetes.cri.image-name"] == container.image
	command_fits(container)
	not foreign_mount
	not foreign_environment
}

command_fits(container) { not container.command }

command_fits(container) { container.command == input.OCI.Process.Args }

foreign_mount {
	destination := input.OCI.Mounts[_].destination
	not known_mount(destination)
}

known_mount(destination) { destination == mounts[_] }

# Libraries that the host chooses would run inside the workload.
foreign_environment {
	variable := input.OCI.Process.Env[_]
	startswith(variable, "LD_")
}

# Programs that probes and hooks of the manifest run, word by word.
ExecProcessRequest { input.process.Args == programs[_] }

# Files that the runtime shares (service accounts, config maps), and no way out of their directory.
CopyFileRequest {
	startswith(input.path, "/run/kata-containers/shared/containers/")
	not contains(input.path, "..")
}

# The network of the pod; loopback stays as it is.
UpdateInterfaceRequest { input.interface.name != "lo" }

UpdateRoutesRequest {
	input.routes.Routes
	not loopback_route
}

loopback_route { input.routes.Routes[_].device == "lo" }

AddARPNeighborsRequest {
	input.neighbors.ARPNeighbors
	not loopback_neighbour
}

loopback_neighbour { input.neighbors.ARPNeighbors[_].device == "lo" }

UpdateEphemeralMountsRequest {
	input.storages
	not lasting_mount
}

lasting_mount { input.storages[_].driver != "ephemeral" }
"""


def policy_of(obj: Mapping[str, Any], *, logs: bool = False) -> str:
    """The text of the policy for a workload; raises NotAWorkload."""
    spec = pod_of(obj)["spec"]
    containers = [*_containers(spec, "initContainers"), *_containers(spec, "containers")]
    if not containers:
        raise NotAWorkload("the pod has no containers")
    allowed = {*HARMLESS, *(("ReadStreamRequest",) if logs else ())}
    name = (obj.get("metadata") or {}).get("name", "")
    lines = [f"# For {obj.get('kind')} {json.encode(str(name)).decode()}.", f"package {PACKAGE}", ""]
    lines += [f"default {request} := {'true' if request in allowed else 'false'}" for request in REQUESTS]
    lines += ["", f"containers := {_listed(_allowed(container) for container in containers)}"]
    lines += ["", f"mounts := {_listed(_mounts(containers))}"]
    lines += ["", f"programs := {_listed(_programs(containers))}"]
    return "\n".join(lines) + "\n" + _RULES


def _containers(spec: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    containers = spec.get(name) or []
    if not isinstance(containers, list) or not all(
        isinstance(container, dict) and isinstance(container.get("image"), str) for container in containers
    ):
        raise NotAWorkload(f"{name} is not a list of containers with images")
    return containers


def _allowed(container: Mapping[str, Any]) -> dict[str, Any]:
    command, arguments = _words(container, "command"), _words(container, "args")
    with_command = {"command": [*command, *arguments]} if command else {}
    return {"image": container["image"], **with_command}


def _words(holder: Mapping[str, Any], name: str) -> list[str]:
    words = holder.get(name) or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise NotAWorkload(f"{name} is not a list of texts")
    return words


def _mounts(containers: Iterable[Mapping[str, Any]]) -> list[str]:
    paths = [
        mount["mountPath"]
        for container in containers
        for mount in container.get("volumeMounts") or ()
        if isinstance(mount, dict) and isinstance(mount.get("mountPath"), str)
    ]
    return sorted({*STANDARD_MOUNTS, *paths})


def _programs(containers: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    commands: list[list[str]] = []
    for container in containers:
        hooks = container.get("lifecycle") or {}
        for holder, names in (
            (container, ("livenessProbe", "readinessProbe", "startupProbe")),
            (hooks, ("postStart", "preStop")),
        ):
            for name in names:
                action = (holder.get(name) or {}).get("exec") if isinstance(holder, dict) else None
                if isinstance(action, dict) and _words(action, "command"):
                    commands.append(_words(action, "command"))
    return [list(words) for words in dict.fromkeys(tuple(command) for command in commands)]


def _listed(values: Iterable[Any]) -> str:
    """A list of values, which in Rego are written as in JSON."""
    items = [json.encode(value).decode() for value in values]
    return "[\n\t" + ",\n\t".join(items) + ",\n]" if items else "[]"
