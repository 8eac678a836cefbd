# What a quote of Intel TDX must show before a machine is affirmed.
#
# Signatures, certificates, collateral and the TDX module are checked in code before this is asked; the rules below look again
# at what a guest's owner cares about.
# The values that one evaluation sees are of one approved image: the policy is asked once for each.
# Reference values: mr_td, rtmr_0, rtmr_1, rtmr_2; rtmr_3 and init_data where they are not zero. Optional: xfam, and
# tdx_tcb_status for statuses beside UpToDate that the code was told to accept as well.
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

genuine if {
	input.appraisal.authentic == true
	input.tdx.quote.header.tee_type == "81000000"
	input.tdx.quote.header.vendor_id == "939a7233f79c4ca9940a0db3957f0607"
}

hardware := 2 if {
	genuine
	input.appraisal.acceptable == true
	tcb_current
	input.tdx.collateral_expiration_status == "0"
}

tcb_current if input.tdx.tcb_status == "UpToDate"

tcb_current if input.tdx.tcb_status in query_reference_value("tdx_tcb_status")

# Firmware (MRTD), boot loader and kernel (RTMR 1), command line and initial file system (RTMR 2).
executables := 3 if {
	genuine
	input.tdx.quote.body.mr_td in query_reference_value("mr_td")
	input.tdx.quote.body.rtmr_1 in query_reference_value("rtmr_1")
	input.tdx.quote.body.rtmr_2 in query_reference_value("rtmr_2")
	runtime_expected
}

# RTMR 3 belongs to what runs later. Zero means that nothing was added.
runtime_expected if input.tdx.quote.body.rtmr_3 == "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"

runtime_expected if input.tdx.quote.body.rtmr_3 in query_reference_value("rtmr_3")

# What the agent took from user-data, and nothing else: the log leads to the register, and every event of it is of that kind.
runtime_expected if input.appraisal.checks["user-data"] == "Pass"

# RTMR 0 holds the firmware's configuration with the Secure Boot variables.
closed if {
	genuine
	input.tdx.td_attributes.debug == false
	sept_ve_settled
	input.tdx.quote.body.rtmr_0 in query_reference_value("rtmr_0")
	init_data_expected
}

sept_ve_settled if input.tdx.td_attributes.septve_disable == true

# The cluster allows such domains (attestation.tdx.allowSeptVe); otherwise the check has failed.
sept_ve_settled if input.appraisal.checks["sept-ve-disable"] == "Warn"

configuration := 2 if {
	closed
	input.tdx.quote.body.xfam in query_reference_value("xfam")
} else := 3 if closed

# MRCONFIGID is set by the host. Zero means that nothing was handed in; anything else must be expected.
init_data_expected if input.init_data == "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"

init_data_expected if input.init_data in query_reference_value("init_data")

# User-data and nothing else: the text came along, its digest is the signed one, and the strict reader of user-data read all of it.
# Entries of other documents are texts and have no members.
init_data_expected if input.init_data_claims["fastness-userdata.json"].pool != ""
