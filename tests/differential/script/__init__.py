"""The script: families of steps, in the order in which they are spoken.

Every family begins with a namespace of its own and leaves no cluster-wide object that another one would see.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.differential.script import (
    applies,
    basics,
    bodies,
    crds,
    deletes,
    descriptions,
    kinds,
    metadata,
    natives,
    patches,
    reading,
    rights,
    subresources,
    watches,
)
from tests.differential.step import Step

FAMILIES: Mapping[str, tuple[Step, ...]] = {
    module.F: module.STEPS
    for module in (
        basics,
        metadata,
        patches,
        applies,
        reading,
        watches,
        deletes,
        bodies,
        rights,
        natives,
        kinds,
        crds,
        subresources,
        descriptions,
    )
}
