"""`management.loft.sh/v1`: confidential capacity for tenants."""

GROUP = "management.loft.sh"
VERSION = "v1"
