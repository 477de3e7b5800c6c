#!/bin/bash
# The images for registries, of both architectures: made without an engine, as
# OCI has them, run on a containerd here, those of the other architecture under
# an emulator.
set -u
BIGA_BUILD=${BIGA_BUILD:-build}
for tool in python3 dpkg-query readelf; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
unset MAKEFLAGS MAKELEVEL
options=(BUILD="$BIGA_BUILD" OPT="${OPT:--O2 -g}")
foreign=arm64
[ "$(uname -m)" != aarch64 ] || foreign=amd64
if ! deploy/package/sysroot $foreign "$BIGA_BUILD/sysroot-$foreign"; then
    options+=(FOREIGN=) # no mirror: images.py says what is missing
fi
nice make --no-print-directory QUIET=1 "${options[@]}" images ||
    { echo "not ok - images are made"; exit 1; }
echo "ok - images are made"
exec python3 -B tests/package/images.py "$BIGA_BUILD/images"
