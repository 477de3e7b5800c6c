# Sourced by what makes packages and images, which then goes to $top.
# shellcheck shell=bash
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# shellcheck disable=SC2034 # who sources this uses it
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
version=$(sed -n 's/^VERSION *:= *//p' "$top/Makefile")

# The one time of all that is made: the last commit's, where there is git;
# of a tree without it, the changelog's.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct 2>/dev/null) ||
        SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' \
            "$top/deploy/package/changelog" | head -n 1)" +%s)
fi
export SOURCE_DATE_EPOCH

# What dpkg and image manifests call the architecture of a program: e_machine
# of its ELF header (System V ABI).
arch_of() { # FILE
    [ "$(head -c 4 "$1" | tail -c 3)" = ELF ] || fail "$1 is no program"
    case $(od -An -tu2 -j18 -N2 "$1" | tr -d ' ') in
    62) echo amd64 ;;
    183) echo arm64 ;;
    *) fail "$1 is for an architecture that is not known here" ;;
    esac
}

triplet_of() { # ARCH: of its folders of libraries and its tools
    case $1 in
    amd64) echo x86_64-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
    esac
}

# strip_to FROM TO: the program without what only a debugger reads
strip_to() {
    local strip
    strip=$(triplet_of "$(arch_of "$1")")-strip
    mkdir -p "$(dirname "$2")"
    "$strip" --strip-unneeded --remove-section=.comment \
        --remove-section=.note -o "$2" "$1" || fail "$1: $strip failed"
    chmod 755 "$2"
}

archive() { # TAR FILE…: the same bytes for the same files, whenever
    tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 \
        --group=0 --numeric-owner -cf "$@"
}

# absolute BUILD[=SYSROOT]…: the same in $builds, wherever we go
absolute() {
    local build
    builds=()
    for build; do
        if [[ $build == *=* ]]; then
            build=$(realpath "${build%%=*}")=$(realpath "${build#*=}")
        else
            build=$(realpath "$build")
        fi
        builds+=("$build")
    done
}
