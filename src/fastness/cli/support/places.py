"""Places of objects in which users write what may be anything, so that only its size is shown.

    opaque_place("MachineConfig", ("spec", "config", "systemd", "units", "*", "contents"))

A secret that is a word cannot be told from another word by looking at it. So what stands in these places goes, whatever it is:

* Ignition (machine configs, rendered ones too, and overlays): everything but paths, names and flags of it.
* Environment, arguments and probes of containers, wherever there are containers.
* ConfigMaps of other namespaces than those of the operators, and what the broker is given as environment.
* Texts of several lines anywhere in a spec: a file by another name.
* Annotations, but for those of the platform's own domains; init data, copies of objects and causes of changes among those too.
* Policies with their cases. Paths of webhooks: one of them is the credential of its caller.
* Headers, kernel arguments behind their `=`.
"""

from __future__ import annotations

from typing import Final

Path = tuple[str, ...]

# Namespaces whose ConfigMaps say how the platform is set up; in others they belong to somebody.
PLATFORM: Final = frozenset({
    "openshift-sandboxed-containers-operator", "openshift-machine-config-operator", "openshift-nfd", "fastness-system",
    "nvidia-gpu-operator", "intel-dcap", "trustee-operator-system", "kube-system",
})  # fmt: skip
_IGNITION: Final = frozenset({("MachineConfig", "config"), ("NodeOverlay", "config"), ("ControllerConfig", "config")})
_IGNITION_SHOWN: Final = frozenset({
    "path", "name", "version", "compression", "filesystem", "device", "devices", "format", "level", "target", "homeDir",
    "primaryGroup", "groups", "shell",
})  # fmt: skip
_CALLED: Final = (("webhooks", "*", "clientConfig", "url"), ("webhooks", "*", "clientConfig", "service", "path"))
_WHOLE: Final = {
    "AppraisalPolicy": (
        ("spec", "rego"), ("spec", "cases", "*", "input"), ("spec", "cases", "*", "data"), ("status", "active", "rego"),
    ),
    "KbsConfig": (("spec", "KbsEnvVars"),),
    "ValidatingWebhookConfiguration": _CALLED,
    "MutatingWebhookConfiguration": _CALLED,
    "CertificateSigningRequest": (("spec", "extra"),),
}  # fmt: skip
_DOMAINS: Final = ("fastness.dev", "kubernetes.io", "k8s.io", "openshift.io", "coreos.com")
_NOTES_HIDDEN: Final = ("last-applied-configuration", "change-cause", "description")
_WRITTEN: Final = ("spec", "data", "template", "parameters", "webhooks")
_PROBES: Final = ("exec", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def opaque_place(kind: str, path: Path) -> bool:
    """Whether a text at this path of an object is shown by its size alone; `*` stands for the place in a list."""
    if any(path[: len(place)] == place for place in _WHOLE.get(kind, ())):
        return True
    if len(path) > 1 and path[0] == "spec" and (kind, path[1]) in _IGNITION:
        named = next((name for name in reversed(path) if name != "*"), "")
        return named not in _IGNITION_SHOWN
    return _of_container(path) or _header(path)


def opaque_note(name: str) -> bool:
    """Whether an annotation is shown by its size alone."""
    domain, _, rest = name.rpartition("/")
    ours = any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _DOMAINS)
    return not ours or rest in _NOTES_HIDDEN


def opaque_text(path: Path, text: str) -> bool:
    """Whether a text is a file by another name: several lines where users write."""
    return (
        bool(path)
        and path[0] in _WRITTEN
        and "\n" in text.rstrip("\n")
        and not text.startswith("-----BEGIN CERTIFICATE")
    )


def without_argument(argument: str) -> str:
    """A kernel argument without what it sets."""
    name, equals, value = argument.partition("=")
    return f"{name}=<redacted>" if equals and value else argument


def _of_container(path: Path) -> bool:
    """The environment of containers, what they are started with after the program, and what probes run."""
    match path:
        case (*_, "env", "*", "value") | (*_, "args", "*") | (*_, "command", "*"):
            return True
        case (*_, "command", "*0"):
            return any(name in _PROBES for name in path)
    return False


def _header(path: Path) -> bool:
    """A value of a header, in any of the forms that are in use; names of headers are not taken out."""
    return path[-1:] != ("name",) and any("header" in name.lower() for name in path[-4:-1])
