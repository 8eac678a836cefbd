"""Who owns which field of an object, and server-side apply.

Every write records, field by field, which manager made it (`metadata.managedFields`), and an apply uses that record to
merge, to remove what is no longer applied and to refuse to overwrite somebody else's fields. The meaning is that of
Kubernetes' structured merge and diff, leaf by leaf, with the list and map types of the schema.

    TypedSchema        once for each kind and version: where an object may be divided between managers
    Writer             who writes, through which version and subresource, when
    track_update       managedFields after a create, update or patch
    apply              merged object and managedFields of a server-side apply, or ApplyConflict, BadConfiguration
    reset_fields       what a subresource cannot change
    fields_of          the fields that a configuration states
    FieldSet           a set of paths, in the shape of fieldsV1

Read `element.py`, `fieldset.py`, `schema.py`, then `ownership.py`, `compare.py`, `merge.py`, `managed.py`; `tracking.py`
puts them together and is what the REST engine calls.
"""

from fastness.apiserver.fields.errors import (
    ApplyConflict,
    BadConfiguration,
    BadListItem,
    DamagedOwnership,
    FieldConflict,
    FieldNotDeclared,
    FieldsError,
    ManagedFieldsGiven,
    WrongShape,
)
from fastness.apiserver.fields.fieldset import FieldSet, human
from fastness.apiserver.fields.managed import Writer
from fastness.apiserver.fields.ownership import NOTHING, fields_of, reset_fields
from fastness.apiserver.fields.schema import TypedSchema
from fastness.apiserver.fields.tracking import Applied, apply, track_update

__all__ = [
    "NOTHING",
    "Applied",
    "ApplyConflict",
    "BadConfiguration",
    "BadListItem",
    "DamagedOwnership",
    "FieldConflict",
    "FieldNotDeclared",
    "FieldSet",
    "FieldsError",
    "ManagedFieldsGiven",
    "TypedSchema",
    "Writer",
    "WrongShape",
    "apply",
    "fields_of",
    "human",
    "reset_fields",
    "track_update",
]
