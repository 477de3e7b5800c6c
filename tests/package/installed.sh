#!/bin/bash
# The packages in a Debian that was just made: installed, used, upgraded, removed
# and purged.  What state there is stays until they are purged; nothing of theirs
# stays after that.  Needs root, debootstrap and a mirror of Debian, which is the
# one that this machine's apt has.
set -u
. tests/lib/check.sh
. tests/lib/free_port.sh
BIGA_BUILD=${BIGA_BUILD:-build}
trap 'umount "$work/root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT

skip() {
    echo "$*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can install packages"
for tool in debootstrap dpkg-shlibdeps unshare; do
    command -v $tool >/dev/null || skip "there is no $tool: scripts/setup --package"
done
if [ -z "${BIGA_OWN_MOUNTS:-}" ]; then # mounts that go away with us
    unshare --mount true 2>/dev/null || skip "there are no mount namespaces here"
    rm -rf "$work"
    trap - EXIT
    BIGA_OWN_MOUNTS=1 exec unshare --mount --pid --fork --kill-child -- \
        bash "$0"
fi
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    "Codename: $codename" 'Component: main' 2>/dev/null | head -n 1)
[ -n "$mirror" ] || skip "apt has no mirror of main for ${codename:-this system}"

root=$work/root debs=$work/debs
mkdir -p "$debs/next"
debootstrap --variant=minbase --include=systemd,ca-certificates "$codename" \
    "$root" "$mirror" >"$work/log" 2>&1 ||
    skip "debootstrap cannot make a $codename: $(tail -n 1 "$work/log")"
mount -t proc proc "$root/proc" || skip "proc cannot be mounted here"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/quick" # it goes away soon
there=(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin
    LC_ALL=C HOME=/root DEBIAN_FRONTEND=noninteractive)
inside() {
    "${there[@]}" "$@"
}
quietly() {
    "$@" && echo "done"
}

check "the packages are made" 0 "building" deploy/package/deb "$BIGA_BUILD" "$debs"
for deb in "$debs"/*.deb; do # the same again, as of the next version
    dpkg-deb --raw-extract "$deb" "$work/next"
    sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
    [ ! -d "$work/next/etc/biga" ] ||
        sed -i '1i # Settings of the next version.' "$work"/next/etc/biga/*.env
    dpkg-deb --root-owner-group --build "$work/next" "$debs/next" >/dev/null
    rm -r "$work/next"
done
mkdir "$root/debs"
cp -r "$debs"/. "$root/debs"

NAMES="biga biga-extender biga-advertiser biga-card"
UNITS="biga-extender biga-advertiser biga-cri"
# state PACKAGE: as dpkg has it
state() {
    inside dpkg-query -W -f '${db:Status-Abbrev}\n' "$1"
}
install() { # FOLDER: by apt, with all that the packages need
    inside sh -c "apt-get install -y -qq --no-install-recommends \
        -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
        $1/*.deb" && echo installed
}
check "they install with what they need" 0 "^installed$" install /debs
whole() { # PACKAGE: dpkg prints what is not, and its status says nothing of it
    ! inside dpkg --verify "$1" 2>&1 | grep . && echo whole
}
for name in $NAMES; do
    check "$name is whole" 0 "^whole$" whole "$name"
done
for unit in $UNITS; do
    check "$unit is not enabled" 1 "^disabled$" inside systemctl is-enabled $unit
done
for program in biga biga-extender biga-advertiser biga-cri; do
    check "$program runs there" 0 "^$program [0-9]" inside $program --version
done
check "kubectl's plugin, too" 0 "^biga [0-9]" inside kubectl-biga --version
check "and what is for a card" 0 "^biga-card [0-9]" \
    inside /usr/lib/biga/biga-card version
check "bash completes biga" 0 "complete .* biga$" inside bash -c \
    '. /usr/share/bash-completion/completions/biga; complete -p biga'
check "a card's containerd is set up without the repository" 0 \
    'sandbox_image = ".*biga-pause:[0-9]' \
    inside /usr/lib/biga/card-setup --address 192.168.100.2

# an extender and an advertiser as their units have them, but for ports; not
# by inside(): $! would be the shell around them, and they would go on
ports=()
for first in 15900 16600 17300; do
    ports+=("127.0.0.1:$(free_port $first)")
done
"${there[@]}" biga-extender --state /var/lib/biga --read-listen "${ports[0]}" \
    --publish-listen "${ports[1]}" --scheduler-listen "${ports[2]}" \
    2>"$work/extender.log" &
extender=$!
"${there[@]}" biga-advertiser --fleet 2 --server "http://${ports[1]}" \
    2>"$work/advertiser.log" &
advertiser=$!
published() {
    for _ in $(seq $((HANGS * 20))); do
        inside biga --server "http://${ports[0]}" nodes >"$work/nodes" 2>&1 &&
            [ "$(grep -c ' ready ' "$work/nodes")" = 2 ] && echo published && return
        kill -0 $extender $advertiser || break
        sleep 0.05
    done
    cat "$work"/nodes "$work"/*.log
    return 1
}
check "hosts are published and shown" 0 "^published$" published
kill $advertiser $extender
wait $advertiser $extender
check "there is state" 0 "biga" ls "$root/var/lib/biga"
ls -A "$root/var/lib/biga" >"$work/state"
mkdir -p "$root/var/lib/biga-cri" "$root/var/lib/biga-advertiser"
touch "$root/var/lib/biga-cri/pods"

echo BIGA_LOG_LEVEL=debug >>"$root/etc/biga/extender.env"
check "a unit is enabled by hand" 0 "^done$" quietly \
    inside systemctl enable biga-extender biga-cri
check "the kubelet of a host wants what is enabled" 0 "biga-cri.service" \
    ls "$root/etc/systemd/system/kubelet.service.wants"
check "they are upgraded" 0 "^installed$" install /debs/next
check "to the next version" 0 '[+]next$' \
    inside dpkg-query -W -f '${Version}\n' biga-extender
check "what was enabled still is" 0 "^enabled$" \
    inside systemctl is-enabled biga-extender
check "what was not still is not" 1 "^disabled$" \
    inside systemctl is-enabled biga-advertiser
check "settings are as the operator left them" 0 "^BIGA_LOG_LEVEL=debug$" \
    cat "$root/etc/biga/extender.env"
check "and others those of the next version" 0 "next version" \
    cat "$root/etc/biga/cri.env"
check "the state is there" 0 "^done$" quietly diff "$work/state" \
    <(ls -A "$root/var/lib/biga")

# shellcheck disable=SC2086 # lists of words
check "they are removed" 0 "Removing biga-card" inside dpkg --remove $NAMES
for name in biga-extender biga-advertiser; do
    check "of $name settings stay" 0 "^rc" state $name
done
check "programs are gone" 1 "^$" sh -c \
    "echo; ls '$root'/usr/bin | grep biga"
check "nothing starts any more" 0 "^done$" quietly test -z \
    "$(find "$root/etc/systemd" -name 'biga-*')"
check "the state is still there" 0 "^done$" quietly diff "$work/state" \
    <(ls -A "$root/var/lib/biga")
check "and that of the other programs" 0 "pods" ls "$root/var/lib/biga-cri"
check "they are purged" 0 "Purging" inside dpkg --purge biga-extender \
    biga-advertiser
rm -r "$root/debs"
left() {
    find "$root" -xdev -path "$root/proc" -prune -o -iname '*biga*' -print |
        grep -v "^$root/tmp/" >"$work/left"
    cat "$work/left"
    [ ! -s "$work/left" ] && echo none
}
check "nothing is left" 0 "^none$" left
exit $bad
