#!/bin/sh
# Let every program of this machine believe the certificates in a bundle, in whichever way its distribution does that.
#
#   fastness-ca-trust BUNDLE
#
# ROOT goes before the directories of the distribution.
set -eu

bundle=$1
root=${ROOT:-}

if command -v update-ca-trust > /dev/null; then
    mkdir -p "$root/etc/pki/ca-trust/source/anchors"
    cp "$bundle" "$root/etc/pki/ca-trust/source/anchors/fastness-user-ca-bundle.crt"
    update-ca-trust
elif command -v update-ca-certificates > /dev/null; then
    directory=$root/usr/local/share/ca-certificates/fastness
    rm -rf "$directory"
    mkdir -p "$directory"
    # One certificate in each file: a second one in the same file is not found by its hash.
    awk -v directory="$directory" '
        /-----BEGIN CERTIFICATE-----/ { count++; file = directory "/" count ".crt" }
        file { print > file }
        /-----END CERTIFICATE-----/ { close(file); file = "" }' "$bundle"
    update-ca-certificates
else
    echo "neither update-ca-trust nor update-ca-certificates is here: $bundle is believed by nobody" >&2
    exit 1
fi
