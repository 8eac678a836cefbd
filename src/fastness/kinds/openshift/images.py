"""Where images come from: Image, ImageDigestMirrorSet, ImageTagMirrorSet of `config.openshift.io/v1`.

The Image `cluster` says which registries are allowed, blocked or insecure; a mirror set says where the images of a source are to
be had as well, by digest or by tag. What follows for machines is decided in `machineconfig/render/registries`.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.openshift import LABELS
from fastness.kinds.openshift.config import GROUP

VERSION: Final = "v1"
IMAGE_CONFIG_NAME: Final = "cluster"
NEVER_CONTACT_SOURCE: Final = "NeverContactSource"
ALLOW_CONTACTING_SOURCE: Final = "AllowContactingSource"

LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
PATH: Final = r"(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*"
"""Path components of a repository: lower case, with single dots, one or two underscores, or any number of hyphens between."""
LOCATION: Final = rf"^{LABEL}(?:\.{LABEL})*(?::[0-9]+)?{PATH}$"
"""A registry, a namespace in one, or a repository: `host[:port][/path]`."""
WILDCARD: Final = rf"^\*(?:\.{LABEL})+$"
"""All hosts below a domain."""
SOURCE: Final = f"{WILDCARD}|{LOCATION}"


def _registries(description: str) -> s.Fragment:
    return s.array(s.string(), description, **s.ATOMIC)


_SOURCES = s.obj(
    {
        "insecureRegistries": _registries("Registries without a valid certificate, or without TLS."),
        "blockedRegistries": _registries("Registries that nothing is pulled from; all others are allowed."),
        "allowedRegistries": _registries("The only registries that anything is pulled from."),
        "containerRuntimeSearchRegistries": s.list_set(
            s.string(), "Where the runtime looks for images without a registry, in this order.", minItems=1
        ),
    },
    "How the container runtime treats registries.",
)
_HOSTNAMES = "Names under which the cluster's own registry is reached from outside."
_IMPORT_MODE = s.enum("", "Legacy", "PreserveOriginal", description="How image streams import manifest lists.")

IMAGE = Kind(
    group=GROUP,
    version=VERSION,
    kind="Image",
    plural="images",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="How the cluster treats registries; the object is called `cluster`.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "allowedRegistriesForImport": s.array(
                        s.obj(
                            {
                                "domainName": s.string("Name of the registry, with its port unless that is 80 or 443."),
                                "insecure": s.boolean("Whether it is reached without TLS."),
                            }
                        ),
                        "Registries that ordinary users may import from.",
                        **s.ATOMIC,
                    ),
                    "externalRegistryHostnames": _registries(_HOSTNAMES),
                    "additionalTrustedCA": s.obj(
                        {"name": s.string("Name of a ConfigMap in openshift-config.")},
                        "Certificate authorities of registries.",
                    ),
                    "registrySources": _SOURCES,
                    "imageStreamImportMode": _IMPORT_MODE,
                },
                "What is wanted.",
            ),
            "status": s.obj(
                {
                    "internalRegistryHostname": s.string("Name of the cluster's own registry."),
                    "externalRegistryHostnames": _registries(_HOSTNAMES),
                    "imageStreamImportMode": _IMPORT_MODE,
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
)


def _mirror_set(kind: str, field: str, by: str, short_name: str) -> Kind:
    entry = s.obj(
        {
            "source": s.string(
                "What pull specifications name: a registry, a part of one, or `*.domain`.", pattern=SOURCE
            ),
            "mirrors": s.list_set(
                s.string(pattern=LOCATION), "Where the same images are, the first one first; the source comes last."
            ),
            "mirrorSourcePolicy": s.enum(
                NEVER_CONTACT_SOURCE,
                ALLOW_CONTACTING_SOURCE,
                description="Whether the source itself is asked when no mirror has the image.",
            ),
        },
        required=("source",),
    )
    return Kind(
        group=GROUP,
        version=VERSION,
        kind=kind,
        plural=f"{kind.lower()}s",
        scope=Scope.CLUSTER,
        short_names=(short_name,),
        labels=LABELS,
        description=f"Mirrors for images that are pulled by {by}.",
        schema=s.obj(
            {
                "spec": s.obj({field: s.array(entry, "Sources and their mirrors.", **s.ATOMIC)}, "What is wanted."),
                "status": s.anything("What was observed."),
            },
            required=("spec",),
        ),
        subresources=("status",),
    )


IMAGE_DIGEST_MIRROR_SET = _mirror_set("ImageDigestMirrorSet", "imageDigestMirrors", "digest", "idms")
IMAGE_TAG_MIRROR_SET = _mirror_set("ImageTagMirrorSet", "imageTagMirrors", "tag", "itms")

KINDS = (IMAGE, IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET)
