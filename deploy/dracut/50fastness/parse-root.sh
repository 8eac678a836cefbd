#!/bin/sh
# root=fastness: the root is the encrypted volume, which the agent opens; sysroot.mount waits for it, and dracut need not.
# shellcheck disable=SC2034  # read by dracut
[ "$root" = fastness ] && rootok=1
