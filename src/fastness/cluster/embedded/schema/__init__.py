"""Structural schemas at run time: prune, default, validate, and judge the schemas of users' CRDs.

    compiled.py     the door: CompiledSchema
    structural.py   the other door: structural_problems, for CustomResourceDefinitions

Everything here is pure: no I/O, no clock. The REST engine calls it between decoding and storing.
"""

from fastness.cluster.embedded.schema.compiled import CompiledSchema
from fastness.cluster.embedded.schema.structural import structural_problems

__all__ = ["CompiledSchema", "structural_problems"]
