"""CustomResourceDefinitions: from kinds to manifests and back.

`manifest` describes our kinds to any API server, `from_manifest` turns a definition that a user wrote into kinds the
embedded API can serve. `files` keeps `deploy/crds` in step with the kinds; `python -m fastness.kinds.crd` is its command.
"""

from fastness.kinds.crd.manifest import manifest, manifests
from fastness.kinds.crd.reading import from_manifest

__all__ = ["from_manifest", "manifest", "manifests"]
