# What a quote of a TPM 2.0 must show before a machine is affirmed.
#
# A TPM vouches for what was booted. It says nothing about who can read the memory, so `hardware` stays unasserted.
# Reference values: tpm_pcr4, tpm_pcr7, tpm_pcr11, tpm_pcr12, tpm_pcr14; tpm_pcr8 where PCR 8 was extended. All that one evaluation
# sees are of one approved image: the policy is asked once for each.
package policy

import rego.v1

# 97: the machine is not recognised. 33: something else was booted. 36: the security configuration is not known.
default instance_identity := 97

default executables := 33

default configuration := 36

# 0: nothing is asserted.
trust_claims := {
	"instance-identity": instance_identity,
	"configuration": configuration,
	"executables": executables,
	"file-system": 0,
	"hardware": 0,
	"runtime-opaque": 0,
	"storage-opaque": 0,
	"sourced-data": 0,
}

genuine if input.appraisal.authentic == true

# The quote was signed by the key that the machine enrolled with.
instance_identity := 2 if {
	genuine
	input.appraisal.checks["attestation-key"] == "Pass"
}

# The boot path (4) and the kernel image with all its parts (11) are approved.
executables := 3 if {
	genuine
	input.tpm.pcr04 in query_reference_value("tpm_pcr4")
	input.tpm.pcr11 in query_reference_value("tpm_pcr11")
}

# Secure Boot policy (7), what was added to the command line (12) and the owner's keys (14) are approved.
configuration := 2 if {
	genuine
	input.tpm.pcr07 in query_reference_value("tpm_pcr7")
	input.tpm.pcr12 in query_reference_value("tpm_pcr12")
	input.tpm.pcr14 in query_reference_value("tpm_pcr14")
	init_data_expected
}

# PCR 8 holds init data. Zero means that nothing was handed in; anything else must be expected. A quote without it shows neither.
init_data_expected if {
	input.tpm.pcr08 != ""
	trim(input.tpm.pcr08, "0") == ""
}

init_data_expected if input.tpm.pcr08 in query_reference_value("tpm_pcr8")
