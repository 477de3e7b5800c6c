#!/bin/bash
# Are the fields in router/wire/fields.inc those of the published CRI?  Compared
# with api.proto of k8s.io/cri-api, of the version that tests/kube/build/go.mod
# pins, as Go has unpacked it on this machine, or with $BIGA_CRI_PROTO: each
# field's name, number and type, and each call of the two services.  What the
# file has besides is printed.  TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 1

# Go names no folder that it has not unpacked completely.
pinned() {
    local go=${GO:-go}
    command -v "$go" >/dev/null || go=/usr/local/go/bin/go
    cd tests/kube/build && GOPROXY=off GOFLAGS=-mod=readonly GOTOOLCHAIN=local \
        "$go" list -m -f '{{.Dir}}' k8s.io/cri-api 2>/dev/null
}

proto=${BIGA_CRI_PROTO:-}
if [ -z "$proto" ]; then
    proto=$(pinned)
    proto=${proto:+$proto/pkg/apis/runtime/v1/api.proto}
fi
[ -f "$proto" ] || {
    echo "Go has not unpacked the k8s.io/cri-api of tests/kube/build/go.mod" \
        "(BIGA_CRI_PROTO names another api.proto)"
    exit 77
}
echo "# $proto"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# MESSAGE FIELD NUMBER KIND WITHIN, as fields.inc has them; types that it does
# not know are messages of Windows.
awk '
    { sub(/\/\/.*/, "") }
    /^enum / || (depth && /^[ \t]+enum /) { enums[$2] = 1; in_enum = 1 }
    /^message / { message = $2; sub(/{.*/, "", message); messages[message] = 1 }
    /[{]/ { depth++ }
    message && !in_enum && /=[ \t]*[0-9]+/ {
        line = $0
        many = sub(/^[ \t]*repeated[ \t]+/, "", line)
        gsub(/map[ \t]*<[^>]*>/, "map", line)
        split(line, part, /[ \t=;[]+/)
        first = part[1] == "" ? 2 : 1
        n++
        of[n] = message
        type[n] = part[first]
        name[n] = part[first + 1]
        number[n] = part[first + 2]
        repeated[n] = many
    }
    { closes = gsub(/[}]/, "}") }
    closes { depth -= closes; in_enum = 0; if (depth == 0) message = "" }
    END {
        for (i = 1; i <= n; i++) {
            t = type[i]
            within = "Nothing"
            if (t == "map")
                kind = "PAIRS"
            else if (t == "string")
                kind = repeated[i] ? "TEXTS" : "TEXT"
            else if (t == "bytes")
                kind = "BYTES"
            else if (t == "double")
                kind = "DOUBLE"
            else if (t in messages) {
                kind = repeated[i] ? "MANY" : "ONE"
                within = t
            } else
                kind = repeated[i] ? "NUMBERS" : "NUMBER"
            print of[i], name[i], number[i], kind, within
        }
    }' "$proto" | sort >"$work/published"
sed -n 's/^FIELD(\(.*\))$/\1/p' router/wire/fields.inc | tr -d , | sort \
    >"$work/ours"
sed -n 's/^ *rpc  *\([A-Za-z]*\)(.*/\1/p' "$proto" | sort >"$work/calls"
sed -n 's/.*ROW([A-Z_]*, *[A-Z]*, *"\([A-Za-z]*\)".*/\1/p' \
    router/wire/method.c | sort >"$work/methods"

bad=0
check() { # what, lines of ours, lines of theirs
    if [ -s "$2" ] && [ -z "$(comm -23 "$2" "$3")" ]; then
        echo "ok - $1 ($(wc -l <"$2"))"
    else
        echo "not ok - $1:"
        comm -23 "$2" "$3" | sed 's/^/# /' | head -n 20
        bad=1
    fi
}
check "each of our fields is as published" "$work/ours" "$work/published"
check "each of our calls is published" "$work/methods" "$work/calls"
check "each published call is in our table" "$work/calls" "$work/methods"

# enumerators whose numbers stand in router/wire
for word in POD=0 NODE=2 Localhost=2 PROPAGATION_HOST_TO_CONTAINER=1 \
    PROPAGATION_BIDIRECTIONAL=2 SANDBOX_READY=0 CONTAINER_EXITED=2 \
    CONTAINER_DELETED_EVENT=3; do
    grep -Eq "^ *${word%=*} *= *${word#*=};" "$proto" ||
        { echo "not ok - $word is not published"; bad=1; }
done

# what is newer in messages that we look into
cut -d ' ' -f 1 "$work/ours" | sort -u >"$work/messages"
comm -13 "$work/ours" "$work/published" |
    grep -Fwf <(sed 's/$/ /' "$work/messages") |
    awk 'NR == FNR { known[$1] = 1; next } $1 in known' "$work/messages" - |
    grep -v 'Windows' >"$work/more"
grep -vE '^(StopContainer|Exec|ExecSync|Attach|PortForward|Checkpoint[A-Za-z]*|UpdatePodSandboxResources)Request ' \
    "$work/more" | sed 's/^/# passed on unread: /'
exit $bad
