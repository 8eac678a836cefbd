"""Who owns which field of an object, and server-side apply.

Every write records, field by field, which manager made it (`metadata.managedFields`), and an apply uses that record to
merge, to remove what is no longer applied and to refuse to overwrite somebody else's fields. The meaning is that of
Kubernetes' structured merge and diff, leaf by leaf, with the list and map types of the schema. In the order of reading:

    element.py      One step of a field path, in the form that managedFields stores
    fieldset.py     A set of field paths, as a trie that has the very shape of fieldsV1
    schema.py       What ownership must know of a type: where an object may be divided between managers
    ownership.py    Which fields an object has, in the two ways in which Kubernetes counts them
    compare.py      What a write changed: fields that went, fields whose value is another, fields that came
    merge.py        Putting an applied configuration into the live object, and taking out what is no longer applied
    managed.py      The list in metadata.managedFields: who owns which fields, since when
    tracking.py     Ownership through a write: the two entry points of this package
    client_side.py  Peace between `kubectl apply` and `kubectl apply --server-side`
    errors.py       Why field ownership said no

What the REST engine calls:

* `TypedSchema`: once for each kind and version, where an object may be divided between managers.
* `Writer`: who writes, through which version and subresource, when.
* `track_update`: managedFields after a create, update or patch.
* `apply`: merged object and managedFields of a server-side apply, or ApplyConflict, BadConfiguration.
* `reset_fields`: what a subresource cannot change. `fields_of`: the fields that a configuration states.
* `FieldSet`: a set of paths, in the shape of fieldsV1.
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
