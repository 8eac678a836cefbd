"""A real Kubernetes API for tests and benchmarks: etcd, kube-apiserver and kube-controller-manager on loopback.

`RealKube.start(directory, binaries)` brings up one of each in a directory of its own and returns when the API serves
and the controllers have done their first work; `stop()` ends those processes and no others. There is no node and
no scheduler: Pods stay Pending, which is all that an API needs to be compared with another.

- `credentials` makes the CA, the certificates and the token file (trustme).
- `process` runs one program with its log and knows how to end it.
- `cluster` holds `RealKube` itself.
- `fixtures` is the pytest plugin with `real_kube`; nothing else here imports pytest.

`tools/realkube.py` finds or builds the programs.
"""

from tests.realkube.cluster import RealKube
from tests.realkube.credentials import User
from tests.realkube.process import StartFailed

__all__ = ["RealKube", "StartFailed", "User"]
