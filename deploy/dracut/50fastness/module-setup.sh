#!/bin/bash
# A dracut module that puts the agent before Ignition: the machine proves what it booted, and Ignition gets its configuration from
# the loopback. Everything it installs becomes part of the initial file system and is measured with it.
#
#   /usr/lib/fastness/agent         the directory that tools/agent_image.py builds; brings its own Python
#   /usr/lib/fastness/trust.json    whom this image believes: the doors' CA and the keys that sign configurations
#   /usr/lib/fastness/volumes.json  which encrypted volumes its machines have, and on which devices; without it there are none
#   /usr/lib/fastness/root          what a volume `root` is filled with at a first boot, where the image brings it itself
#   /usr/lib/ignition/user.ign      the pointer: with it Ignition never asks the platform for user-data

fastness_home=/usr/lib/fastness
fastness_pointer=/usr/lib/ignition/user.ign

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
    [[ -s "${dracutsysrootdir-}$fastness_pointer" ]] || {
        dinfo "fastness: $fastness_pointer is missing: Ignition would apply what the host writes as user-data"
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
    hostonly='' instmods dm_mod dm_crypt ecb xts dm_integrity authenc ext4
    # Where hosts put user-data, for the agent to read: fw_cfg, disks, discs.
    hostonly='' instmods qemu_fw_cfg virtio_blk sr_mod isofs vfat udf
}

# What is masked in the image is masked here, too: a shell of the initial file system is root on a machine whose registers are
# still good. dracut takes units along, and no masks.
mask_as_in_the_image() {
    local directory link
    for directory in systemd/system systemd/system-generators; do
        for link in "${dracutsysrootdir-}"/{etc,usr/etc}/"$directory"/*; do
            [[ $(readlink "$link") == /dev/null ]] || continue
            mkdir -p "$initdir/etc/$directory"
            ln -sfn /dev/null "$initdir/etc/$directory/${link##*/}"
        done
    done
}

# An emergency ends the boot: the shell stays masked, and its target must be one that can start.
install_emergency() {
    mkdir -p "$initdir/etc/systemd/system"
    rm -f "$initdir/etc/systemd/system/emergency.target"
    inst_simple "$moddir/emergency.target" /etc/systemd/system/emergency.target
    inst_simple "$moddir/fastness-stop.service" "$systemdsystemunitdir/fastness-stop.service"
    inst_multiple systemctl echo
}

has_volume() {
    grep -q "\"$1\"[[:space:]]*:" "${dracutsysrootdir-}$fastness_home/volumes.json" 2> /dev/null
}

# What is mounted is known when the image is built: a mount that is there has to succeed, and none is skipped.
install_volumes() {
    local requires="$systemdsystemunitdir/initrd-root-fs.target.requires"
    if has_volume var; then
        inst_simple "$moddir/sysroot-var.mount" "$systemdsystemunitdir/sysroot-var.mount"
        ln_r "$systemdsystemunitdir/sysroot-var.mount" "$requires/sysroot-var.mount"
    fi
    if has_volume root; then
        # In /etc, where it comes before the unit that systemd makes of the command line.
        inst_simple "$moddir/sysroot.mount" /etc/systemd/system/sysroot.mount
        ln_r /etc/systemd/system/sysroot.mount "$requires/sysroot.mount"
        inst_hook cmdline 20 "$moddir/parse-root.sh"
        inst_multiple cp
        if [[ -d "${dracutsysrootdir-}$fastness_home/root" ]]; then
            mkdir -p "$initdir$fastness_home"
            cp -a "${dracutsysrootdir-}$fastness_home/root" "$initdir$fastness_home/"
        fi
    fi
}

install() {
    local file unit="$systemdsystemunitdir/fastness-boot.service"
    while IFS= read -r -d '' file; do
        inst_simple "$file"
    done < <(find "${dracutsysrootdir-}$fastness_home/agent" \( -type f -o -type l \) -print0)
    inst_simple "$fastness_home/trust.json"
    inst_simple "$fastness_pointer"
    if [[ -s "${dracutsysrootdir-}$fastness_home/volumes.json" ]]; then
        inst_simple "$fastness_home/volumes.json"
        inst_multiple mke2fs
    fi
    mask_as_in_the_image
    install_emergency
    # The tools are one program with many names; it loads its way to the TPM by name, which dependencies do not show.
    inst_multiple tpm2 tpm2_activatecredential tpm2_create tpm2_createek tpm2_createprimary tpm2_flushcontext tpm2_getcap \
        tpm2_hmac tpm2_load tpm2_nvread tpm2_pcrevent tpm2_pcrextend tpm2_pcrread tpm2_policysecret tpm2_quote tpm2_readpublic \
        tpm2_startauthsession
    inst_libdir_file 'libtss2-tcti-device.so*'
    # What the agent's own Python and libraries take from the C library's package; files are copied above without their dependencies.
    inst_libdir_file 'libm.so.*' 'libdl.so.*' 'libpthread.so.*' 'librt.so.*' 'libresolv.so.*' 'libutil.so.*'
    inst_multiple dirname readlink mount umount
    inst_multiple -o vmware-rpctool
    # Fedora CoreOS and its kin copy ignition/config.ign of the boot partition, which a host writes, over the pointer. A condition and
    # no mask: the targets of Ignition require the unit, and one that is skipped is fulfilled.
    inst_simple "$moddir/own-pointer.conf" "$systemdsystemunitdir/coreos-ignition-setup-user.service.d/50-fastness.conf"
    inst_simple "$moddir/fastness-boot.service" "$unit"
    for file in fastness-unlock.service fastness-leave-initrd.service; do
        inst_simple "$moddir/$file" "$systemdsystemunitdir/$file"
    done
    inst_simple "$moddir/gate.conf" "$systemdsystemunitdir/initrd-switch-root.service.d/50-fastness.conf"
    mkdir -p "$initdir$systemdsystemunitdir"/{initrd-root-device,initrd-root-fs,initrd-switch-root}.target.requires
    # A root that is on no volume would be mounted without the keys: the targets require what opens them.
    ln_r "$systemdsystemunitdir/fastness-unlock.service" \
        "$systemdsystemunitdir/initrd-root-device.target.requires/fastness-unlock.service"
    install_volumes
    ln_r "$systemdsystemunitdir/fastness-leave-initrd.service" \
        "$systemdsystemunitdir/initrd-switch-root.target.requires/fastness-leave-initrd.service"
    # Requires, not Wants: without the agent there must be no Ignition that somebody else answers.
    mkdir -p "$initdir$systemdsystemunitdir/ignition-fetch.service.requires"
    ln_r "$unit" "$systemdsystemunitdir/ignition-fetch.service.requires/fastness-boot.service"
}
