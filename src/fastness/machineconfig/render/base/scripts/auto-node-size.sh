#!/bin/sh
# How much of this machine the kubelet leaves to the system: counted from its memory and processors, or as configured.
#
#   dynamic-system-reserved-calc.sh [ENVIRONMENT [DIRECTORY]]
#
# Reads ENVIRONMENT (/etc/node-sizing-enabled.env) and writes 20-auto-sizing.conf into DIRECTORY, which the kubelet reads. Where a
# count is known beforehand, MEMINFO names the file to read memory from, and CPUS says how many processors there are.
set -eu

environment=${1:-/etc/node-sizing-enabled.env}
directory=${2:-/etc/openshift/kubelet.conf.d}
version=${SIZING_VERSION:-/etc/node-sizing-version.json}

setting() {
    sed -n "s/^$1=//p" "$environment" | tail -n 1
}

enabled=$(setting NODE_SIZING_ENABLED)
memory=$(setting SYSTEM_RESERVED_MEMORY)
cpu=$(setting SYSTEM_RESERVED_CPU)
storage=$(setting SYSTEM_RESERVED_ES)
memory=${memory:-1Gi}
cpu=${cpu:-500m}
storage=${storage:-1Gi}

# Nodes that were sized by the first formula say so in this file, and keep the processors that they were configured with.
[ -e "$version" ] || printf '{"version": 2}\n' > "$version"
first=$(grep -c '"version"[: ]*1[^0-9]' "$version" || true)

if [ "$enabled" = true ]; then
    # Whole GiB: 1 up to 8, then 6 percent of what is above, and 2 percent of what is above 120 once there are more than 128.
    memory=$(awk '
        $1 == "MemTotal:" {
            gib = int($2 / 1048576)
            reserved = gib <= 8 ? 1 : gib <= 128 ? 1 + 0.06 * (gib - 8) : 7.72 + 0.02 * (gib - 120)
            printf "%dGi", int(reserved + 0.5)
        }' "${MEMINFO:-/proc/meminfo}")
    [ -n "$memory" ] || { echo "no MemTotal in ${MEMINFO:-/proc/meminfo}" >&2; exit 1; }
    if [ "$first" = 0 ]; then
        cpu=$(awk -v count="${CPUS:-$(nproc)}" 'BEGIN {
            reserved = 0.06 + 0.012 * (count - 1)
            printf "%.2f", reserved < 0.5 ? 0.5 : reserved
        }')
    fi
fi

mkdir -p "$directory"
# Beside its place first: a kubelet that starts meanwhile must not read half of it. Only names that end in .conf are read.
cat > "$directory/.20-auto-sizing" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
systemReserved:
  cpu: "$cpu"
  ephemeral-storage: "$storage"
  memory: "$memory"
END
mv "$directory/.20-auto-sizing" "$directory/20-auto-sizing.conf"
