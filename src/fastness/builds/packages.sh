#!/bin/sh
# Installs packages from a repository in a directory, with whatever package manager this image has.
#
#     packages.sh DIRECTORY [-REMOVED...] NAME...
#
# There is no network here, and no other repository is asked: the same packages are installed whenever this runs.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}
export PATH LC_ALL=C DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH=0

give_up() {
    echo "fastness-build: $1" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Where extensions images have their repository: the first of these that holds such an index.
repository() {
    for place in /usr/share/rpm-ostree/extensions /usr/share/extensions /extensions /repo ""; do
        for index in "$@"; do
            if [ -e "$top$place/$index" ]; then
                echo "$top$place"
                return
            fi
        done
    done
    give_up "the extensions image has no repository that $manager reads (looked for $*)"
}

top=$1
shift
removed="" names=""
for word in "$@"; do
    case $word in
        -*) removed="$removed ${word#-}" ;;
        *) names="$names $word" ;;
    esac
done

manager=""
for each in dnf dnf5 microdnf rpm-ostree apt-get; do
    if has "$each"; then
        manager=$each
        break
    fi
done
[ -n "$manager" ] || give_up "the base image has no package manager (dnf, microdnf, rpm-ostree, apt-get), so$names cannot be installed: take a base that has one, or the extension out of the MachineConfig"

# Of what is to go only what is there: the kernel of one base has parts that another's has not.
present=""
case $manager in
    apt-get) for name in $removed; do dpkg -s "$name" >/dev/null 2>&1 && present="$present $name"; done ;;
    *) for name in $removed; do rpm -q "$name" >/dev/null 2>&1 && present="$present $name"; done ;;
esac

# Packages need no signature of their own: the image that they come from is named by digest.
with_dnf() {
    where=$(repository repodata/repomd.xml)
    set -- --disablerepo='*' --repofrompath="fastness,file://$where" --enablerepo=fastness --nogpgcheck \
        --setopt=fastness.gpgcheck=0 --setopt=install_weak_deps=0 --setopt=keepcache=0 --setopt=cachedir=/run/fastness-cache
    # shellcheck disable=SC2086
    {
        [ -z "$present" ] || "$manager" -y "$@" remove $present
        "$manager" -y "$@" install $names || give_up "$manager could not install$names from the extensions image"
    }
    rm -rf /run/fastness-cache /var/cache/dnf /var/cache/libdnf5 /var/log/dnf* /var/log/hawkey.log /var/lib/dnf/history.sqlite*
}

with_rpm_ostree() {
    where=$(repository repodata/repomd.xml)
    list=/etc/yum.repos.d/fastness-extensions.repo
    printf '[fastness]\nname=fastness\nbaseurl=file://%s\nenabled=1\ngpgcheck=0\n' "$where" >"$list"
    # shellcheck disable=SC2086
    {
        [ -z "$present" ] || rpm-ostree override remove $present $(printf -- '--install=%s ' $names)
        [ -n "$present" ] || rpm-ostree install $names || give_up "rpm-ostree could not install$names from the extensions image"
    }
    rm -f "$list"
}

with_apt() {
    where=$(repository Packages Packages.gz Packages.xz)
    work=/run/fastness-apt
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    echo "deb [trusted=yes] file:$where ./" >"$work/sources.list"
    set -- -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root -o APT::Install-Recommends=0
    apt-get -q "$@" update
    # shellcheck disable=SC2086
    {
        [ -z "$present" ] || apt-get -qy "$@" remove $present
        apt-get -qy "$@" install $names || give_up "apt-get could not install$names from the extensions image"
    }
    rm -rf "$work" /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/apt/*.bin /var/cache/ldconfig/aux-cache
}

case $manager in
    apt-get) with_apt ;;
    rpm-ostree) with_rpm_ostree ;;
    *) with_dnf ;;
esac
