"""`confidentialcontainers.org/v1alpha1`: settings of the key broker, under the names its users know.

    broker.py  KbsConfig and TrusteeConfig: the detailed and the short way to configure the key broker

The built-in broker reads them: secrets named here appear as resources, config maps feed policies and reference values.
"""

GROUP = "confidentialcontainers.org"
VERSION = "v1alpha1"
