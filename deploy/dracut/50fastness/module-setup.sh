#!/bin/bash
# A dracut module that puts the agent before Ignition: the machine proves what it booted, and Ignition gets its configuration from
# the loopback. Everything it installs becomes part of the initial file system and is measured with it.
#
#   /usr/lib/fastness/agent         the directory that tools/agent_image.py builds; brings its own Python
#   /usr/lib/fastness/trust.json    whom this image believes: the doors' CA and the keys that sign configurations

fastness_home=/usr/lib/fastness

check() {
    require_binaries tpm2_quote || return 1
    [[ -x "${dracutsysrootdir-}$fastness_home/agent/bin/fastness-agent" ]] || {
        dinfo "fastness: $fastness_home/agent is missing: build it with tools/agent_image.py"
        return 1
    }
    [[ -s "${dracutsysrootdir-}$fastness_home/trust.json" ]] || {
        dinfo "fastness: $fastness_home/trust.json is missing: this image would believe nobody"
        return 1
    }
    # Only when asked for: an image that attests is a decision, not a side effect of installed packages.
    return 255
}

depends() {
    echo systemd ignition
}

installkernel() {
    hostonly='' instmods =drivers/char/tpm configfs sev-guest tdx-guest tsm
}

install() {
    local file unit="$systemdsystemunitdir/fastness-boot.service"
    while IFS= read -r -d '' file; do
        inst_simple "$file"
    done < <(find "${dracutsysrootdir-}$fastness_home/agent" \( -type f -o -type l \) -print0)
    inst_simple "$fastness_home/trust.json"
    # The tools are one program with many names; it loads its way to the TPM by name, which dependencies do not show.
    inst_multiple tpm2 tpm2_activatecredential tpm2_createak tpm2_createek tpm2_flushcontext tpm2_getcap tpm2_load \
        tpm2_nvread tpm2_pcrextend tpm2_policysecret tpm2_quote tpm2_readpublic tpm2_startauthsession
    inst_libdir_file 'libtss2-tcti-device.so*'
    inst_multiple dirname readlink
    inst_simple "$moddir/fastness-boot.service" "$unit"
    # Requires, not Wants: without the agent there must be no Ignition that somebody else answers.
    mkdir -p "$initdir$systemdsystemunitdir/ignition-fetch.service.requires"
    ln_r "$unit" "$systemdsystemunitdir/ignition-fetch.service.requires/fastness-boot.service"
}
