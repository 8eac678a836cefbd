"""ControllerConfig: facts about the cluster that go into every rendered config.

A singleton, `machine-config-controller`, that the operator writes and nobody edits. It counts as completed when the status
speaks of the present generation, `TemplateControllerCompleted` is True and neither Running nor Failing is.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION

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


_SPEC = s.obj(
    {
        "clusterDNSIP": s.string("Address of the cluster's name service."),
        "cloudProviderConfig": s.string("Configuration of the cloud provider, as text."),
        "platform": s.string("The platform, where older readers look for it."),
        "etcdDiscoveryDomain": s.string("Domain in which members of etcd were once discovered; no longer read."),
        "kubeAPIServerServingCAData": _bytes("Certificates that the API server's certificate chains to."),
        "rootCAData": _bytes("Certificates that the config server's certificate chains to."),
        "cloudProviderCAData": _bytes("Certificates that the cloud provider's API chains to."),
        "additionalTrustBundle": _bytes("Certificates that all machines trust in addition."),
        "imageRegistryBundleData": _bundles("Certificates for image registries, from the cluster."),
        "imageRegistryBundleUserData": _bundles("Certificates for image registries, from the user."),
        "pullSecret": s.anything("Reference to the pull secret of all machines.", nullable=True),
        "internalRegistryPullSecret": _bytes("Pull secret of the registry in the cluster."),
        "images": s.mapping(s.string(), "Images that templates refer to, by name."),
        "baseOSContainerImage": s.string("The operating system image of this release."),
        "baseOSExtensionsContainerImage": s.string("The image with packages for extensions of this release."),
        "osImageURL": s.string("Where older releases named the operating system image."),
        "releaseImage": s.string("The release that this config belongs to."),
        "proxy": s.anything("The proxy that machines use.", nullable=True),
        "infra": s.anything("The cluster's Infrastructure object, embedded.", nullable=True),
        "dns": s.anything("The cluster's DNS object, embedded.", nullable=True),
        "ipFamilies": s.enum(
            "IPv4", "IPv6", "DualStack", "DualStackIPv6Primary", description="Address families of the cluster."
        ),
        "networkType": s.string("The network plug-in of the cluster."),
        "network": s.obj(
            {"mtuMigration": s.anything("A change of MTU that is under way.", nullable=True)},
            "The network of the cluster.",
            nullable=True,
        ),
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
