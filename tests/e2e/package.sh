#!/bin/bash
# The Debian package of a node: what it holds runs from where it is, and its
# units and configurations say what the programs and the kubelet understand.
set -u
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
BIGA_BUILD=${BIGA_BUILD:-build}
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null && continue
    echo "$tool is missing: a Debian package is made with dpkg-dev"
    exit 77
done

quietly() {
    "$@" && echo "done"
}

check "the package is made" 0 "building package .biga-node." \
    deploy/package/deb "$BIGA_BUILD" "$work"
deb=$(echo "$work"/biga-node_*.deb)
check "its programs need libraries that are named" 0 "libnghttp2.*libsqlite3" \
    dpkg-deb --field "$deb" Depends
check "settings stay when it is upgraded" 0 "^/etc/biga/cri.env$" \
    dpkg-deb --info "$deb" conffiles
check "it unpacks" 0 "^done$" quietly \
    dpkg-deb --raw-extract "$deb" "$work/root"
for program in biga-advertiser biga-cri biga; do
    check "$program runs" 0 "^$program [0-9.]+$" \
        "$work/root/usr/bin/$program" --version
    check "$program has a manual page" 0 "^\.TH" \
        zcat "$work/root/usr/share/man/man1/$program.1.gz"
done
check "what runs after an upgrade can be read by sh" 0 "^done$" quietly \
    sh -n "$work/root/DEBIAN/postinst"
check "and what runs before a removal" 0 "^done$" quietly \
    sh -n "$work/root/DEBIAN/prerm"

starts() { # unit: the program that it starts is in the package
    local path
    path=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' \
        "$work/root/lib/systemd/system/$1.service")
    test -n "$path" && test -x "$work/root$path" && echo "starts $path"
}
for unit in biga-advertiser biga-cri; do
    check "$unit.service starts what is there" 0 "^starts /usr/bin/$unit$" \
        starts "$unit"
done

# the unit may write where biga-cri writes by default, and nowhere else
writable() {
    local line
    line=$(sed -n 's/^ReadWritePaths=//p' deploy/systemd/biga-cri.service)
    "$BIGA_BUILD/biga-cri" --help >"$work/help"
    for folder in /var/lib/kubelet /var/log/pods; do
        grep -q -- "$folder" "$work/help" && [[ " $line " == *" $folder "* ]] ||
            return 1
    done
    grep -q -- /var/lib/biga-cri "$work/help" &&
        grep -q '^StateDirectory=biga-cri$' deploy/systemd/biga-cri.service
}
check "biga-cri.service may write where biga-cri does" 0 "^done$" \
    quietly writable
check "the kubelet is told where biga-cri listens" 0 \
    "^containerRuntimeEndpoint: unix:///run/biga/cri.sock$" \
    cat deploy/kubelet/kubeletconfiguration+merge.yaml
check "which is its default" 0 "unix:///run/biga/cri.sock" \
    "$BIGA_BUILD/biga-cri" --help

verify() { # systemd's own check, in which only our units count
    mkdir -p "$work/units" &&
        cp "$work/root"/lib/systemd/system/biga-*.service "$work/units" ||
        return 1
    sed -i "s,=/usr/bin/,=$work/root/usr/bin/," "$work"/units/*.service
    systemd-analyze verify --man=no --recursive-errors=no \
        "$work"/units/*.service 2>&1 | grep "$work/units" && return 1
    return 0
}
if command -v systemd-analyze >/dev/null; then
    check "systemd understands the units" 0 "^done$" quietly verify
else
    echo "ok - systemd understands the units # SKIP no systemd-analyze"
fi
exit $bad
