"""CustomResourceDefinitions: from kinds to manifests and back.

    __main__.py  `python -m fastness.kinds.crd`: write the manifests, or say which of them are stale
    files.py     The manifests in `deploy/crds`, kept in step with the kinds
    manifest.py  A CustomResourceDefinition out of kinds
    reading.py   Kinds out of a CustomResourceDefinition
    roles.py     Cluster roles for people: who looks, who reads everything, who decides, who says what counts
    sets.py      Whose definitions are whose: our own kinds, and sets of others that are installed on request alone

`manifest` describes our kinds to any API server, `from_manifest` turns a definition that a user wrote into kinds the
embedded API can serve. `files` keeps `deploy/crds` in step with the kinds; `python -m fastness.kinds.crd` is its command.
"""

from fastness.kinds.crd.manifest import manifest, manifests
from fastness.kinds.crd.reading import from_manifest

__all__ = ["from_manifest", "manifest", "manifests"]
