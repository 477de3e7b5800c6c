#!/bin/bash
# The real kubectl against the publish listener.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need kubectl curl

start_extender
publish=$(port publish)
slices=http://127.0.0.1:$publish/apis/resource.k8s.io/v1/resourceslices

slice() { # node
    cat <<END
{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":
"$1-xpu.biga.dev-0","annotations":{"biga.dev/boot-id":"b1"}},"spec":{"driver":
"xpu.biga.dev","nodeName":"$1","pool":{"name":"$1","generation":1,
"resourceSliceCount":1},"devices":[{"name":"numa-0","attributes":{
"biga.dev/kind":{"string":"numa"},
"resource.kubernetes.io/numaNode":{"int":0}}}]}}
END
}

# A home of its own: no configuration and no cache of the user's.
printf 'apiVersion: v1\nkind: Config\n' >"$dir/config"
k() {
    HOME=$dir timeout "$HANGS" kubectl --kubeconfig="$dir/config" \
        --server="http://127.0.0.1:$publish" "$@" >"$dir/out.log" 2>"$dir/err.log"
}
out() { grep -Eq -- "$1" "$dir/out.log"; }
err() { grep -Eq -- "$1" "$dir/err.log"; }

k get resourceslices && err 'No resources found'
ok $? "an empty list is one"

for node in h1 h2 h3; do
    slice $node >"$dir/$node.json"
    curl -sf -m "$HANGS" -o /dev/null -X PUT --data-binary @"$dir/$node.json" \
        "$slices/$node-xpu.biga.dev-0" || echo "# cannot publish $node"
done

k get resourceslices && out '^NAME +NODE +DRIVER +POOL +GENERATION' &&
    out '^h1-xpu.biga.dev-0 +h1 +xpu.biga.dev +h1 +1 +1 +0$' &&
    [ "$(wc -l <"$dir/out.log")" = 4 ]
ok $? "get resourceslices draws a table"

k get resourceslices --chunk-size=1 && [ "$(wc -l <"$dir/out.log")" = 4 ]
ok $? "pages are followed"

k get resourceslices -o yaml && out 'nodeName: h3' && out '^kind: List'
ok $? "get -o yaml"

k get resourceslice h2-xpu.biga.dev-0 -o 'jsonpath={.spec.nodeName}' &&
    out '^h2$'
ok $? "get one by name"

k get resourceslices --field-selector spec.nodeName=h3 -o name &&
    [ "$(cat "$dir/out.log")" = resourceslice.resource.k8s.io/h3-xpu.biga.dev-0 ]
ok $? "a field selector"

k describe resourceslice h1-xpu.biga.dev-0 && out 'Node Name: +h1'
ok $? "describe"

k api-resources && out '^resourceslices .*resource.k8s.io/v1 +false +ResourceSlice'
ok $? "api-resources"

! k get resourceslice none && err 'NotFound.*"none" not found'
ok $? "an unknown name is NotFound"

! k get resourceslices --watch && err 'MethodNotAllowed'
ok $? "a watch is refused"

k delete resourceslice h2-xpu.biga.dev-0 && out 'deleted' &&
    k get resourceslices -o name && ! out h2
ok $? "delete"

k create --validate=false -f "$dir/h2.json" && out 'created' &&
    ! k create --validate=false -f "$dir/h2.json" && err 'AlreadyExists|already exists'
ok $? "create, once"

k replace --validate=false -f "$dir/h2.json" && out 'replaced'
ok $? "replace"

sed 's/"generation":1/"generation":0/' "$dir/h2.json" >"$dir/bad.json"
! k replace --validate=false -f "$dir/bad.json" && err 'spec.pool.generation'
ok $? "an error names the field"

echo "1..$n"
