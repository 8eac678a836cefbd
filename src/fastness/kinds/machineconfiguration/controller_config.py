"""ControllerConfig: facts about the cluster that go into every rendered config.

A singleton, `machine-config-controller`, that the operator writes and nobody edits. It counts as completed when the status
speaks of the present generation, `TemplateControllerCompleted` is True and neither Running nor Failing is. All of its rules are
in the copies of DNS and Infrastructure that it carries; no field is required, because a cluster that is not OpenShift has none of
these facts.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.openshift.embedded import DNS, INFRASTRUCTURE

SINGLETON = "machine-config-controller"


def _bundles(description: str) -> s.Fragment:
    bundle = s.obj(
        {
            "file": s.string("Name of the file that the bundle is written to."),
            "data": s.string("The certificates, PEM.", format="byte"),
        },
        required=("file", "data"),
    )
    return s.array(bundle, description, nullable=True, **s.ATOMIC)


def _bytes(description: str) -> s.Fragment:
    return s.string(description, format="byte", nullable=True)


def _texts(descriptions: dict[str, str]) -> dict[str, s.Fragment]:
    return {name: s.string(description) for name, description in descriptions.items()}


_PULL_SECRET = s.obj(
    _texts({
        "apiVersion": "API version of the object.",
        "kind": "Kind of the object.",
        "name": "Name of the object.",
        "namespace": "Namespace of the object.",
        "uid": "UID of the object.",
        "resourceVersion": "Version of the object that is meant.",
        "fieldPath": "Part of the object that is meant.",
    }),
    "Reference to the pull secret of all machines.",
    nullable=True,
    **{"x-kubernetes-map-type": "atomic"},
)  # fmt: skip

_PROXY = s.obj(
    _texts({
        "httpProxy": "Proxy for plain requests.",
        "httpsProxy": "Proxy for encrypted requests.",
        "noProxy": "Names and networks that are reached without it, separated by commas.",
    }),
    "The proxy that machines use.",
    nullable=True,
    **s.KEEP,
)  # fmt: skip


def _mtu(description: str) -> s.Fragment:
    size = s.integer("A size in bytes.", format="int64", minimum=0)
    return s.obj({"from": size, "to": size}, description)


_NETWORK = s.obj(
    {
        "mtuMigration": s.obj(
            {"network": _mtu("Of the cluster's network."), "machine": _mtu("Of the machines' network.")},
            "A change of MTU that is under way.",
            nullable=True,
            **s.KEEP,
        )
    },
    "The network of the cluster.",
    nullable=True,
    **s.KEEP,
)

_SPEC = s.obj(
    {
        "clusterDNSIP": s.string("Address of the cluster's name service."),
        "cloudProviderConfig": s.string("Configuration of the cloud provider, as text."),
        "platform": s.string("The platform, where older readers look for it."),
        "etcdDiscoveryDomain": s.string("Domain in which members of etcd were once discovered; no longer read."),
        "etcdCAData": _bytes("Certificates that etcd's certificate chains to; no longer read."),
        "kubeletIPv6": s.boolean("Whether kubelets use IPv6 alone; no longer read."),
        "kubeAPIServerServingCAData": _bytes("Certificates that the API server's certificate chains to."),
        "rootCAData": _bytes("Certificates that the config server's certificate chains to."),
        "cloudProviderCAData": _bytes("Certificates that the cloud provider's API chains to."),
        "additionalTrustBundle": _bytes("Certificates that all machines trust in addition."),
        "imageRegistryBundleData": _bundles("Certificates for image registries, from the cluster."),
        "imageRegistryBundleUserData": _bundles("Certificates for image registries, from the user."),
        "pullSecret": _PULL_SECRET,
        "internalRegistryPullSecret": _bytes("Pull secret of the registry in the cluster."),
        "images": s.mapping(s.string(), "Images that templates refer to, by name."),
        "baseOSContainerImage": s.string("The operating system image of this release."),
        "baseOSExtensionsContainerImage": s.string("The image with packages for extensions of this release."),
        "osImageURL": s.string("Where older releases named the operating system image."),
        "releaseImage": s.string("The release that this config belongs to."),
        "proxy": _PROXY,
        "infra": INFRASTRUCTURE,
        "dns": DNS,
        "ipFamilies": s.enum(
            "IPv4", "IPv6", "DualStack", "DualStackIPv6Primary", description="Address families of the cluster."
        ),
        "networkType": s.string("The network plug-in of the cluster."),
        "network": _NETWORK,
        "bgpVIPPeersJSON": s.string("Neighbours that virtual addresses are announced to, as JSON.", minLength=1),
    },
    "Facts about the cluster.",
)

_CERTIFICATE = s.obj(
    {
        "subject": s.string("Subject of the certificate."),
        "signer": s.string("Who signed it."),
        "notBefore": s.timestamp("When it becomes valid."),
        "notAfter": s.timestamp("When it expires."),
        "bundleFile": s.string("The bundle that it is in."),
    },
    required=("subject", "signer", "bundleFile"),
)

CONTROLLER_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="ControllerConfig",
    plural="controllerconfigs",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Facts about the cluster that go into every rendered configuration.",
    schema=s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "observedGeneration": s.integer("Generation that the status speaks of.", format="int64"),
                    "conditions": s.conditions(
                        "TemplateControllerRunning, TemplateControllerCompleted, TemplateControllerFailing."
                    ),
                    "controllerCertificates": s.array(
                        _CERTIFICATE,
                        "Certificates that came with the spec.",
                        **s.ATOMIC,
                    ),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

KINDS = (CONTROLLER_CONFIG,)
