"""Native Kubernetes kinds: what a real API server serves itself, so that no CRD is generated for them.

`definitions` reads the generated facts about their types, resources, columns and default roles.
"""
