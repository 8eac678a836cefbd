"""The API of the cluster: one port, two adapters.

`port.py` is what controllers and doors know: get, list, watch, create, patch, delete, with resource versions. `embedded/` keeps
the objects itself and serves them to the real kubectl; `kube/` speaks HTTPS to any Kubernetes API server. One contract suite
runs against both, and the embedded API is compared request by request with a real kube-apiserver.
"""
