#!/bin/bash
# Packages and images of both architectures, made as docs/install.md says.  The
# images for registries are as OCI has them, and run on a containerd here, those
# of the other architecture under an emulator.
set -u
BIGA_BUILD=${BIGA_BUILD:-build}
for tool in python3 dpkg-query readelf git; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
unset MAKEFLAGS MAKELEVEL
foreign=arm64 only=
[ "$(uname -m)" != aarch64 ] || foreign=amd64
if ! deploy/package/sysroot $foreign "$BIGA_BUILD/sysroot-$foreign"; then
    only=FOREIGN= # no mirror: images.py says what is missing
fi
make() { # as $BIGA_BUILD was
    [ "$*$only" != deb-foreignFOREIGN= ] || return 0
    nice make --no-print-directory QUIET=1 BUILD="$BIGA_BUILD" \
        OPT="${OPT:--O2 -g}" $only "$@"
}
told=$(python3 -B tests/lib/documents.py package)
(eval "${told:?no document has such commands}")
[ $? = 0 ] || { echo "not ok - they are made as documents say"; exit 1; }
echo "ok - they are made as documents say"
exec python3 -B tests/package/images.py "$BIGA_BUILD/images"
