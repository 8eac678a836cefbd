"""Native Kubernetes kinds: what a real API server serves itself, so that no CRD is generated for them.

apiextensions.py  CustomResourceDefinition: a kind of object that somebody added to the API
core.py           The kinds that most code names, with views of Namespace, Node, Pod, Lease and PodDisruptionBudget
definitions.py    What a real Kubernetes API server knows about its native types, read from `types.json`
native.py         The native kinds, made of the facts about a real API server
rbac.py           Roles and bindings: who may do what
resources.py      Where native kinds are found that machines and clients name
"""
