"""How images and objects are named in this group.

A *tag form* is where something will be pushed, a *digest form* is what was pushed: only the second says exactly which bytes.
The host needs a dot, so that a short name never resolves through somebody's search list. A digest form has one namespace at
most, a tag form any number: so it is in the public API, and manifests carry over.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s


def tagged(description: str) -> s.Fragment:
    """A pull specification with a tag."""
    return s.with_rules(
        s.string(description, minLength=1, maxLength=predicates.LONGEST_IMAGE),
        predicates.TAGGED,
    )


def digested(description: str) -> s.Fragment:
    """A pull specification with a digest."""
    return s.with_rules(
        s.string(description, minLength=1, maxLength=predicates.LONGEST_IMAGE),
        *predicates.DIGESTED,
    )


def is_digested(image: str) -> bool:
    """Whether a field in digest form would take the image."""
    return predicates.holds(image, predicates.IMAGE_DIGEST, predicates.IMAGE_NAME)


def subdomain(description: str, **limits: int) -> s.Fragment:
    """The name of an object, refused with the words for object names."""
    return s.with_rules(
        s.string(description, maxLength=predicates.LONGEST_NAME, **limits),
        predicates.SUBDOMAIN,
    )


def named(description: str) -> s.Fragment:
    """A reference to another object by its name."""
    return s.obj({"name": subdomain("Name of the object.", minLength=1)}, description, required=("name",))


def reference(description: str) -> s.Fragment:
    """A reference to an object of any resource."""
    return s.obj(
        {
            "name": subdomain("Name of the object.", minLength=1),
            "namespace": s.with_rules(
                s.string("Namespace of the object; none if the resource belongs to the cluster.", maxLength=63),
                predicates.LABEL,
            ),
            "group": subdomain("Group of the resource."),
            "resource": s.with_rules(
                s.string("The resource, in the plural.", minLength=1, maxLength=63), predicates.RESOURCE_NAME
            ),
        },
        description,
        required=("name", "group", "resource"),
    )
