#!/bin/bash
# kubectl's plugin for krew: the manifest says what the archive is, and the
# archive runs with nothing but a shell around it.
set -u
. tests/lib/check.sh
BIGA_BUILD=${BIGA_BUILD:-build}
trap 'rm -rf "$work"' EXIT
for tool in dpkg-query readelf readlink; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done

check "it has to be said where archives will be" 1 "is no http" \
    deploy/package/krew "$work/krew" "" "$BIGA_BUILD"
check "in a form that krew can fetch from" 1 "KREW_URL 'ftp://x'" \
    deploy/package/krew "$work/krew" ftp://x "$BIGA_BUILD"
check "archive and manifest are made" 0 "/biga.yaml$" deploy/package/krew \
    "$work/krew" https://example.org/biga/ "$BIGA_BUILD"
archive=$(echo "$work"/krew/*.tar.gz)
manifest=$work/krew/biga.yaml
check "the manifest says where the archive is" 0 \
    "uri: https://example.org/biga/${archive##*/}$" cat "$manifest"
check "and what it is" 0 \
    "sha256: $(sha256sum "$archive" | cut -d' ' -f1)$" cat "$manifest"
check "and of which version" 0 \
    "version: v$("$BIGA_BUILD/biga" --version | cut -d' ' -f2)$" cat "$manifest"
check "nothing in it is left open" 1 "^0$" grep -c '@[a-z0-9]*@' "$manifest"
mkdir "$work/store" "$work/bin"
tar -C "$work/store" -xf "$archive"
bin=$(sed -n 's/^ *bin: //p' "$manifest")
ln -s "$work/store/$bin" "$work/bin/kubectl-biga" # as krew does it
check "what it starts runs through krew's link" 0 "^biga [0-9.]+$" \
    "$work/bin/kubectl-biga" --version
check "and says what is wrong as biga does" 2 "did you mean" \
    "$work/bin/kubectl-biga" nodse
own() { # where the program, and not the shell before it, has libraries from
    LD_DEBUG=libs "$work/bin/kubectl-biga" --version 2>&1 |
        grep 'calling init' >"$work/loaded"
    local pid
    pid=$(sed -n "s,^ *\([0-9]*\):.*$work/store/biga/libcurl.*,\1,p" \
        "$work/loaded")
    [ -n "$pid" ] || { echo "its own libcurl is not taken" && return; }
    # it was that shell before
    grep "^ *$pid:" "$work/loaded" | sed -n "\\,$work/store/biga/,,\$p" |
        grep -v "$work/store/biga/" || echo "only its own"
}
check "it takes no library of this system" 0 "^only its own$" own
check "its bill of materials is SPDX" 0 "^kubectl-biga-" \
    python3 -B tests/package/spdx.py "$work/store/biga.spdx.json"
exit $bad
