"""A bed for tests: a real Kubernetes with kubelets, containers, services and a private registry, on this machine alone.

`Bed.start(directory, binaries)` brings one up in half a minute and `stop()` ends it; what it runs is in namespaces and control
groups of its own, and ends with the process that started it, also when that is killed. What `tests/realkube` is for an API, this
is for nodes: pods run, services have addresses, logs can be read.

- `bed` holds `Bed` itself: the network, the control plane of `tests/realkube` in it, the registry.
- `node` is a machine with containerd, a kubelet and a kube-proxy.
- `machine` is one that boots by itself, with a systemd of its own, and `machine_image` what it boots.
- `space` makes namespaces and runs programs in them.
- `settings` has the files of configuration, as pure functions.
- `images` makes container images and pushes them.
- `base` is an image with Python, made once and kept.
- `name_server` is CoreDNS in it, so that Services have names.
- `kubectl` and `helm` are these programs in a namespace of a test's own.
- `forward` is the door into the bed's network, a process of its own.
- `janitor` removes what a dead bed left, and is the process that watches for that.
- `prerequisites` says what a machine lacks for a bed.
- `fixtures` is the pytest plugin with `bed`; nothing else here imports pytest.

`tools/realkube.py` builds Kubernetes, CoreDNS and helm, `tools/components.py` installs the rest.
"""

from tests.bed.bed import BUSYBOX, Bed
from tests.bed.node import Node

__all__ = ["BUSYBOX", "Bed", "Node"]
