# What a report of AMD SEV-SNP must show before a machine is affirmed.
#
# Signature, certificates, debug, migration, VMPL and minimum security versions are checked in code before this is asked; the
# rules below look again at what a guest's owner cares about.
# The values that one evaluation sees are of one approved image: the policy is asked once for each.
# Reference values: snp_launch_measurement, and init_data where the host handed some in. Optional, for an exact configuration:
# snp_smt_enabled, snp_tsme_enabled, snp_smt_allowed, snp_single_socket, snp_guest_abi_major, snp_guest_abi_minor.
package policy

import rego.v1

# 97: hardware or firmware that is not recognised. 33: something else was booted. 36: the configuration is not known.
default hardware := 97

default executables := 33

default configuration := 36

# 0: nothing is asserted.
trust_claims := {
	"instance-identity": 0,
	"configuration": configuration,
	"executables": executables,
	"file-system": 0,
	"hardware": hardware,
	"runtime-opaque": 0,
	"storage-opaque": 0,
	"sourced-data": 0,
}

genuine if input.appraisal.authentic == true

# A chip of a known generation, and every check that was made in code has passed.
hardware := 2 if {
	genuine
	input.appraisal.acceptable == true
	input.snp.generation != ""
	input.snp.vmpl == 0
}

executables := 3 if {
	genuine
	input.snp.measurement in query_reference_value("snp_launch_measurement")
}

closed if {
	genuine
	input.snp.policy_debug_allowed == false
	input.snp.policy_migrate_ma == false
	init_data_expected
}

configuration := 2 if {
	closed
	input.snp.platform_smt_enabled == query_reference_value("snp_smt_enabled")
	input.snp.platform_tsme_enabled == query_reference_value("snp_tsme_enabled")
	input.snp.policy_smt_allowed == query_reference_value("snp_smt_allowed")
	input.snp.policy_single_socket == query_reference_value("snp_single_socket")
	input.snp.policy_abi_major == query_reference_value("snp_guest_abi_major")
	input.snp.policy_abi_minor == query_reference_value("snp_guest_abi_minor")
} else := 3 if closed

# HOST_DATA is written by the host. Zero means that nothing was handed in; anything else must be expected.
init_data_expected if input.init_data == "0000000000000000000000000000000000000000000000000000000000000000"

init_data_expected if input.init_data in query_reference_value("init_data")

# User-data and nothing else: the text came along, its digest is the signed one, and the strict reader of user-data read all of it.
# Entries of other documents are texts and have no members.
init_data_expected if input.init_data_claims["fastness-userdata.json"].pool != ""
