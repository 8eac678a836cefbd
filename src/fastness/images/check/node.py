"""What the kubelet of an image must be told: its keys are the agent's (ADR 43).

A kubelet that rotates by itself makes keys that no proof named, and each of its requests is denied. Two settings turn that off.
They are files of the image, in a directory that the kubelet reads last (`--config-dir`), so that no rendered configuration turns
them on again. How a kubelet comes by that directory depends on who writes its unit:

| shape | unit of the kubelet | directory |
| --- | --- | --- |
| debian, fcos | the package's, with kubeadm's drop-in | `/usr/lib/fastness/kubelet.conf.d`, by a drop-in after kubeadm's |
| rhcos | the rendered configuration's | `/etc/openshift/kubelet.conf.d`, which that unit names |

The same goes for the kubeconfig, with which the agent renews the node's certificates: kubeadm writes
/etc/kubernetes/kubelet.conf, the units of RHCOS name /var/lib/kubelet/kubeconfig.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fastness.images.check.tree import UNIT_DIRECTORIES, UNITS, FilePiece, Shape, Tree, present, settings_path, text

SETTINGS: Final = """\
# The agent makes the keys of this node and gets them their certificates; a kubelet that made its own would be denied.
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
rotateCertificates: false
serverTLSBootstrap: false
"""
DIRECTORY: Final = "/usr/lib/fastness/kubelet.conf.d"
OPENSHIFT_DIRECTORY: Final = "/etc/openshift/kubelet.conf.d"
# Files of a directory are merged in the order of their names, and the last one wins.
SETTINGS_NAME: Final = "90-certificates.conf"
KUBELET: Final = "kubelet.service"
DROP_IN: Final = f"{UNITS}/{KUBELET}.d/90-fastness.conf"
# The variable is kubeadm's own; no file that its unit reads sets it.
DROP_IN_TEXT: Final = f"""\
[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --config-dir={DIRECTORY}"
"""
_OPENSHIFT_KUBECONFIG: Final = "[Service]\nEnvironment=KUBECONFIG=/var/lib/kubelet/kubeconfig\n"
_OURS: Final = ("fastness-agent.service", "fastness-attest.service")
_CONFIG_DIRECTORY: Final = re.compile(r"--config-dir[= ](/[^\s\"'\\]+)")


def node_pieces(shape: Shape, tree: Tree) -> Iterator[FilePiece]:
    """The settings of the kubelet, and what leads kubelet and agent to each other."""
    yield FilePiece(_settings(shape, tree), SETTINGS.encode())
    if shape is not Shape.RHCOS:
        yield FilePiece(DROP_IN, DROP_IN_TEXT.encode())
        return
    for unit in _OURS:
        yield FilePiece(f"{UNITS}/{unit}.d/50-kubeconfig.conf", _OPENSHIFT_KUBECONFIG.encode())


def rotating(shape: Shape, tree: Tree) -> list[str]:
    """Why the kubelet of an image would make keys of its own, as far as its files show."""
    path = _settings(shape, tree)
    if text(tree, path) != SETTINGS:
        return [path]
    unit = next((f"{place}/{KUBELET}" for place in UNIT_DIRECTORIES if present(tree, f"{place}/{KUBELET}")), "")
    if not unit:
        return []  # it comes with the configuration
    named = _CONFIG_DIRECTORY.findall("\n".join([text(tree, unit), *_drop_ins(tree)]))
    return [] if named and settings_path(tree, named[-1]) == path.rpartition("/")[0] else [f"{unit} (--config-dir)"]


def _settings(shape: Shape, tree: Tree) -> str:
    directory = settings_path(tree, OPENSHIFT_DIRECTORY) if shape is Shape.RHCOS else DIRECTORY
    return f"{directory}/{SETTINGS_NAME}"


def _drop_ins(tree: Tree) -> list[str]:
    """Drop-ins in the order of their names, whichever directory they lie in; the first directory wins for equal names."""
    files: dict[str, str] = {}
    for place in UNIT_DIRECTORIES:
        directory = f"{place}/{KUBELET}.d"
        for name in tree.names(directory):
            files.setdefault(name, text(tree, f"{directory}/{name}"))
    return [files[name] for name in sorted(files)]
