#!/bin/bash
# Two builds of the same sources, in folders of their own and by people with
# other habits, give packages of the same bytes.
set -u
. tests/lib/check.sh
BIGA_BUILD=${BIGA_BUILD:-build}
trap 'rm -rf "$work"' EXIT
for tool in git dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done

export SOURCE_DATE_EPOCH=1700000000
there=$work/another/folder
mkdir -p "$there" "$work/debs"
git ls-files -coz --exclude-standard | xargs -0 cp --parents -t "$there" --
built() { # as $BIGA_BUILD was: $OPT and $CC are what make was told
    (cd "$there" && umask 077 && unset MAKEFLAGS MAKELEVEL BUILD BIGA_BUILD &&
        TZ=Asia/Tokyo LC_ALL=C.UTF-8 nice make --no-print-directory -j2 \
            QUIET=1 deb)
}
check "the packages are made of a copy of the sources" 0 "building" built
check "and of these" 0 "building" deploy/package/deb "$BIGA_BUILD" "$work/debs"
for deb in "$work"/debs/*.deb; do
    name=${deb##*/}
    check "$name is the same" 0 "^$" \
        sh -c "echo; cmp '$deb' '$there/build/$name'"
done
check "images are made of the one" 0 "biga-card_.*tar$" \
    deploy/package/oci "$work/debs" "$BIGA_BUILD"
check "and of the other" 0 "biga-card_.*tar$" \
    "$there/deploy/package/oci" "$there/build" "$there/build"
for image in "$work"/debs/*.oci.tar; do
    name=${image##*/}
    check "$name is the same" 0 "^$" \
        sh -c "echo; cmp '$image' '$there/build/$name'"
done
check "a program says nothing of the folder that it was built in" 1 "^0$" \
    grep -c "$there" "$there/build/biga-extender"
exit $bad
