"""KbsConfig and TrusteeConfig: the detailed and the short way to configure the key broker.

TrusteeConfig chooses a profile, KbsConfig names every object. A few field names begin with a capital; that is how they are
spelled in public, so they stay.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.confidentialcontainers import GROUP, VERSION
from fastness.kinds.kind import Kind, Scope

SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")


def _service_type() -> s.Fragment:
    return s.enum(*SERVICE_TYPES, description="How the broker's service is exposed.")


def _tls_secret(description: str) -> s.Fragment:
    return s.obj({"tlsSecretName": s.object_name("Secret with the key and the certificate.")}, description)


_CERTIFICATE_CACHE = s.obj(
    {
        "secrets": s.array(
            s.obj(
                {
                    "secretName": s.object_name("Secret with certificates of chips."),
                    "mountPath": s.string("Directory in which the verifier looks for them.", maxLength=4096),
                },
                required=("secretName", "mountPath"),
            ),
            "Certificates, by directory.",
            maxItems=64,
        )
    },
    "Certificates that are kept locally instead of being fetched.",
)

_KBS_SPEC = s.obj(
    {
        "kbsConfigMapName": s.object_name("ConfigMap with the broker's settings."),
        "kbsAsConfigMapName": s.object_name("ConfigMap with the attestation service's settings."),
        "kbsRvpsConfigMapName": s.object_name("ConfigMap with the reference value service's settings."),
        "kbsRvpsRefValuesConfigMapName": s.object_name("ConfigMap with reference values."),
        "kbsAuthSecretName": s.object_name("Secret with the administrator's public key."),
        "kbsServiceType": _service_type(),
        "kbsDeploymentType": s.enum(
            "AllInOneDeployment", "MicroservicesDeployment", description="Whether the broker's parts run together."
        ),
        "kbsHttpsKeySecretName": s.object_name("Secret with the private key of the listener."),
        "kbsHttpsCertSecretName": s.object_name("Secret with the certificate of the listener."),
        "kbsSecretResources": s.list_set(
            s.object_name(), "Secrets whose keys are resources, under default/<secret>/<key>.", maxItems=1024
        ),
        "kbsAttestationPolicyConfigMapName": s.object_name("ConfigMap with the attestation policy."),
        "kbsResourcePolicyConfigMapName": s.object_name("ConfigMap with the resource policy."),
        "tdxConfigSpec": s.obj(
            {"kbsTdxConfigMapName": s.object_name("ConfigMap with the settings for quotes.")}, "Settings for Intel TDX."
        ),
        "ibmSEConfigSpec": s.obj(
            {"certStorePvc": s.object_name("Volume claim with certificates and images.")},
            "Settings for IBM Secure Execution.",
        ),
        "KbsEnvVars": s.mapping(s.string(), "Environment of the broker."),
        "kbsLocalCertCacheSpec": _CERTIFICATE_CACHE,
        "KbsDeploymentSpec": s.obj(
            {"replicas": s.integer("How many brokers run.", format="int32", minimum=0)}, "How the broker is deployed."
        ),
    },
    "Settings of the broker.",
)

KBS_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="KbsConfig",
    plural="kbsconfigs",
    scope=Scope.NAMESPACED,
    description="Settings of the key broker, object by object.",
    schema=s.obj(
        {
            "spec": _KBS_SPEC,
            "status": s.obj(
                {"isReady": s.boolean("Whether the broker runs with these settings.")}, "What was observed."
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

TRUSTEE_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="TrusteeConfig",
    plural="trusteeconfigs",
    scope=Scope.NAMESPACED,
    description="Settings of the key broker, by profile.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "profileType": s.enum(
                        "Permissive",
                        "Restricted",
                        description="How strict the broker is; an enforcing cluster refuses Permissive.",
                    ),
                    "kbsServiceType": _service_type(),
                    "httpsSpec": _tls_secret("The listener."),
                    "attestationTokenVerificationSpec": _tls_secret("The key that tokens are verified with."),
                },
                "Settings of the broker.",
            ),
            "status": s.obj(
                {
                    "isReady": s.boolean("Whether the broker runs with these settings."),
                    "conditions": s.conditions(),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

KINDS = (KBS_CONFIG, TRUSTEE_CONFIG)
