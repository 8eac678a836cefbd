"""Level-triggered loops: they look at what is and what should be, and take one step.

`engine/` holds what all loops share: queue, retry, workers, leader lease, conditions and events. Each other package is one
part of the product; `kube/` is what Kubernetes does itself and therefore runs in embedded mode only.
"""
