# Who may have a resource when nobody wrote a policy for it: a caller all of whose parts were affirmed.
#
# Whose resource a path is was decided in code before; this can only take away. The input is a verified attestation token.
package policy

import rego.v1

default allow := false

allow if {
	data.plugin == "resource"
	is_object(input.submods)
	count(input.submods) > 0
	count(affirmed) == count(input.submods)
}

affirmed contains name if {
	some name, part in input.submods
	part["ear.status"] == "affirming"
}
