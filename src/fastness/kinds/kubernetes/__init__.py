"""Native Kubernetes kinds: what a real API server serves itself, so that no CRD is generated for them.

apiextensions.py  CustomResourceDefinition: a kind of object that somebody added to the API
coordination.py   Lease: who holds a role, and until when
core.py           The core group: kinds that most code names, and looks at Namespace, Node and Pod
definitions.py    What a real Kubernetes API server knows about its native types, read from `types.json`
native.py         The native kinds, made of the facts about a real API server
policy.py         PodDisruptionBudget: how many pods of a set may be evicted at a time
rbac.py           Roles and bindings: who may do what
"""
