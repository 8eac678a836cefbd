#!/bin/sh
# Wait until this machine has a name, and make it the lasting one: a kubelet that registers as localhost is nobody's node.
#
#   mco-hostname [SECONDS]
set -eu

left=${1:-300}

while :; do
    given=$(hostname)
    # A resolver may give the absolute form; the dot at its end is no part of the name of a node.
    name=${given%.}
    case $name in
        "" | localhost | localhost.localdomain) ;;
        *) break ;;
    esac
    if [ "$left" -le 0 ]; then
        echo "this machine is still called '$name': give it a name by DHCP, by the platform or in /etc/hostname" >&2
        exit 1
    fi
    left=$((left - 1))
    sleep 1
done

# A name that lasts already needs nobody: hostnamed is started by a bus that gives it 25 seconds, and a busy first boot takes more.
if [ "$given" = "$name" ] && [ "$(cat "${ROOT:-}/etc/hostname" 2> /dev/null)" = "$name" ]; then
    echo "this machine is called $name"
    exit 0
fi
hostnamectl set-hostname --static "$name"
hostnamectl set-hostname --transient "$name"
echo "this machine is called $name"
