"""OpenAPI v3: what kubectl reads before it creates, applies, edits or explains.

    documents.py   The answers below `/openapi/v3`, built when they are first asked for and kept for the generation
    parameters.py  Query and path parameters of the operations, as data
    paths.py       The operations of a kind: one entry per path, one operation per method
    schemas.py     The schemas of one document: definitions of kinds, of their lists, and of everything that those refer to

* `/openapi/v3` is an index of group versions; each entry carries the digest of its document, so that clients keep it for ever.
* A document has the `paths` of every resource with `x-kubernetes-group-version-kind`, `x-kubernetes-action` and the query
  parameters (kubectl looks there for `fieldValidation` and `dryRun`), and the schemas that they need under `components.schemas`.
* Names of schemas are those of a real server: `io.k8s.api.core.v1.Pod`, and for custom kinds the group reversed:
  `dev.fastness.v1alpha1.Machine`.
* `/openapi/v2` is an empty document, for clients that insist on it.
"""

from fastness.apiserver.documents.openapi.documents import OpenApi

__all__ = ["OpenApi"]
