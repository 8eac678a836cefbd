#!/bin/sh
# Which address of this machine is the node's: the one that its default route leaves by, or the one towards NODEIP_HINT.
#
#   nodeip-configuration FAMILY [FAMILY]        FAMILY is 4 or 6, the first one that of the primary address
#
# NODEIP_HINT comes from /etc/default/nodeip-configuration: an address in the network of the nodes. ROOT goes before every path that
# is written, NODEIP_SECONDS says how long a route is waited for.
set -eu

root=${ROOT:-}
left=${NODEIP_SECONDS:-120}
hint=${NODEIP_HINT:-}

source_of() {
    sed -n 's/.* src \([0-9a-fA-F.:]*\).*/\1/p' | head -n 1
}

# The source address towards the hint, where it is of this family.
hinted() {
    case $hint in
        "") return 0 ;;
        *:*) [ "$1" = 6 ] || return 0 ;;
        *) [ "$1" = 4 ] || return 0 ;;
    esac
    ip -"$1" -o route get "$hint" 2> /dev/null | source_of
}

# The route with the lowest metric is listed first; where it names no source, the first global address of its device is taken.
routed() {
    route=$(ip -"$1" -o route show default 2> /dev/null | head -n 1)
    [ -n "$route" ] || return 0
    address=$(printf '%s\n' "$route" | source_of)
    if [ -z "$address" ]; then
        device=$(printf '%s\n' "$route" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
        address=$(ip -"$1" -o address show dev "$device" scope global 2> /dev/null \
            | sed -n 's/.* inet6* \([0-9a-fA-F.:]*\).*/\1/p' | head -n 1)
    fi
    printf '%s\n' "$address"
}

address_of() {
    address=$(hinted "$1")
    [ -n "$address" ] || address=$(routed "$1")
    printf '%s\n' "$address"
}

addresses=
while :; do
    addresses=
    for family in "$@"; do
        address=$(address_of "$family")
        [ -n "$address" ] || { addresses=; break; }
        addresses=${addresses:+$addresses,}$address
    done
    [ -z "$addresses" ] || break
    if [ "$left" -le 0 ]; then
        echo "no default route of family $family: set NODEIP_HINT in /etc/default/nodeip-configuration" >&2
        exit 1
    fi
    left=$((left - 1))
    sleep 1
done

primary=${addresses%%,*}
mkdir -p "$root/run/nodeip-configuration" "$root/etc/systemd/system/kubelet.service.d"
printf '%s\n' "$primary" > "$root/run/nodeip-configuration/primary-ip"
for address in $(printf '%s\n' "$addresses" | tr , ' '); do
    case $address in
        *:*) printf '%s\n' "$address" > "$root/run/nodeip-configuration/ipv6" ;;
        *) printf '%s\n' "$address" > "$root/run/nodeip-configuration/ipv4" ;;
    esac
done
cat > "$root/etc/systemd/system/kubelet.service.d/20-nodenet.conf" <<END
[Service]
Environment="KUBELET_NODE_IP=$primary" "KUBELET_NODE_IPS=$addresses"
END
systemctl daemon-reload
echo "the address of this node is $addresses"
