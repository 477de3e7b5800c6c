#!/bin/bash
# The Debian packages: what they hold runs from where it is, their units say what
# the programs and the kubelet understand, and their bills of materials are whole.
set -u
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
BIGA_BUILD=${BIGA_BUILD:-build}
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null && continue
    echo "$tool is missing: Debian packages are made with dpkg-dev"
    exit 77
done

quietly() {
    "$@" && echo "done"
}

packages="biga biga-extender biga-advertiser biga-card"
check "the packages are made" 0 "building package .biga-card." \
    deploy/package/deb "$BIGA_BUILD" "$work"
deb() { # NAME: its file
    echo "$work/$1"_[0-9]*.deb
}
for package in $packages; do
    check "$package unpacks" 0 "^done$" quietly \
        dpkg-deb --raw-extract "$(deb "$package")" "$work/$package"
done
for program in biga/biga biga/biga-replay biga-extender/biga-extender \
    biga-advertiser/biga-advertiser biga-advertiser/biga-cri; do
    root=$work/${program%/*} name=${program#*/}
    check "$name runs" 0 "^$name [0-9.]+$" "$root/usr/bin/$name" --version
    check "$name has a manual page" 0 "^\.TH" \
        zcat "$root/usr/share/man/man1/$name.1.gz"
    check "$name is completed" 0 "complete .*$name" \
        cat "$root/usr/share/bash-completion/completions/$name"
done
check "kubectl finds the plugin" 0 "^biga [0-9.]+$" \
    "$work/biga/usr/bin/kubectl-biga" --version
check "biga-card runs" 0 "^biga-card [0-9.]+$" \
    "$work/biga-card/usr/lib/biga/biga-card" version
check "the card's image is that program" 0 "^same$" bash -c \
    "cd '$work/biga-card/usr/lib/biga' && tar -xOf biga-card.tar layer.tar |
     tar -xO ./biga-card | cmp - biga-card && echo same"
check "the card's containerd gets its pause image" 0 "biga-pause:[0-9.]*\"" \
    "$work/biga-card/usr/lib/biga/card-setup" --address 192.168.100.2
check "a package needs the libraries of its programs" 0 \
    "libmicrohttpd.*libsqlite3" dpkg-deb --field "$(deb biga-extender)" Depends
check "but what is static needs none" 0 "^$" \
    dpkg-deb --field "$(deb biga-card)" Depends
check "and names the source that it has parts of" 0 "glibc \(= " \
    dpkg-deb --field "$(deb biga-card)" Built-Using
check "packages are of the version that programs are of" 0 "^same$" bash -c \
    "[ \"\$(dpkg-deb --field '$(deb biga)' Version)\" = \
       \"\$(sed -n 's/^biga (\(.*\)) .*/\1/p;q' deploy/package/changelog)\" ] &&
     echo same"
for unit in extender advertiser cri; do
    root=$work/biga-${unit/cri/advertiser}
    check "settings of biga-$unit stay when it is upgraded" 0 \
        "^/etc/biga/$unit.env$" cat "$root/DEBIAN/conffiles"
    check "and are for root's eyes" 0 "^600$" \
        stat -c %a "$root/etc/biga/$unit.env"
done
for script in "$work"/*/DEBIAN/p*; do
    check "${script#"$work/"} can be read by sh" 0 "^done$" quietly \
        sh -n "$script"
    check "and nothing in it is left open" 0 "^0$" \
        sh -c "grep -c '@[a-z]*@' '$script' || :"
done

starts() { # package unit: the program that it starts is in the package
    local path
    path=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' \
        "$work/$1/usr/lib/systemd/system/$2.service")
    test -n "$path" && test -x "$work/$1$path" && echo "starts $path"
}
for unit in biga-extender/biga-extender biga-advertiser/biga-advertiser \
    biga-advertiser/biga-cri; do
    check "${unit#*/}.service starts what is there" 0 \
        "^starts /usr/bin/${unit#*/}$" starts "${unit%/*}" "${unit#*/}"
done

# what the loader takes, as its own list has it, is on the bill
billed() { # program bill
    local library path packages
    for library in $(ldd "$1" | sed -n 's,.* => \(/[^ ]*\) .*,\1,p'); do
        path=$(realpath "$library")
        packages=$(dpkg-query -S "$library" "$path" "${path#/usr}" 2>/dev/null |
            sed 's/:.*//')
        grep -q "\"name\": \"$(head -n 1 <<<"$packages")\"" "$2" ||
            { echo "$library of $packages is missing" && return 1; }
    done
    echo "done"
}
for program in biga/biga biga-extender/biga-extender \
    biga-advertiser/biga-advertiser biga-advertiser/biga-cri; do
    package=${program%/*}
    bill=$work/$package/usr/share/doc/$package/$package.spdx.json
    check "all libraries of ${program#*/} are on the bill" 0 "^done$" \
        billed "$work/$package/usr/bin/${program#*/}" "$bill"
done
card_bill=$work/biga-card/usr/share/doc/biga-card/biga-card.spdx.json
check "that of biga-card has the C library" 0 '"name": "libc6-dev"' \
    cat "$card_bill"
if command -v python3 >/dev/null; then
    check "the bills are SPDX" 0 "^biga-card-[0-9.]+-.*: 3 packages" \
        python3 -B tests/package/spdx.py \
        "$work"/*/usr/share/doc/*/*.spdx.json
    for wrong in 's/"SHA1"/"MD4"/' '0,/SPDXRef-File/s//SPDXRef-Fil/' \
        's/"licenseDeclared": "Apache-2.0"/"licenseDeclared": "Apache 2"/' \
        's/CONTAINS/DEPENDS_ON/' '/documentNamespace/d'; do
        sed "$wrong" "$card_bill" >"$work/wrong.json"
        check "and what is not is found: $wrong" 1 "wrong.json: " \
            python3 -B tests/package/spdx.py "$work/wrong.json"
    done
else
    echo "ok - the bills are SPDX # SKIP no python3"
fi
if command -v lintian >/dev/null; then
    check "lintian has nothing against them" 0 "^done$" quietly \
        lintian --fail-on error,warning --allow-root \
        --suppress-tags-from-file tests/package/lintian.tags "$work"/*.deb
else
    echo "ok - lintian has nothing against them # SKIP no lintian"
fi
mkdir "$work/again"
again() { # by somebody with other habits
    (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
        deploy/package/deb "$BIGA_BUILD" "$work/again" >/dev/null) || return 1
    for package in $packages; do
        cmp "$(deb "$package")" "$work/again/${package}"_[0-9]*.deb || return 1
    done
}
check "made again they are the same bytes" 0 "^done$" quietly again

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
        cp "$work"/*/usr/lib/systemd/system/biga-*.service "$work/units" ||
        return 1
    sed -i "s,=/usr/bin/\(biga-extender\),=$work/\1/usr/bin/\1,
        s,=/usr/bin/biga,=$work/biga-advertiser/usr/bin/biga," \
        "$work"/units/*.service
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
