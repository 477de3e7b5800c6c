#!/bin/sh
# Keys and certificates for Biga's listeners and their clients, with openssl.
#
#   deploy/certs.sh ca     DIR [--cn NAME] [--days N]
#   deploy/certs.sh server DIR FILE --san NAME|ADDRESS… [--cn NAME] [--days N]
#   deploy/certs.sh client DIR FILE --cn NAME [--org GROUP…] [--san NAME…]
#                          [--days N]
#   deploy/certs.sh card   DIR FILE --san ADDRESS… [--cn NAME] [--days N]
#   deploy/certs.sh node   DIR NODE [--days N]
#   deploy/certs.sh pair   DIR FILE
#   deploy/certs.sh show   DIR
#
# ca      a certificate authority: DIR/ca.crt and DIR/ca.key
# server  DIR/FILE.crt and DIR/FILE.key, signed by it, valid for the names and
#         addresses given with --san, for servers only
# client  the same for clients only; --cn is who it is: an advertiser is
#         "system:node:NAME", kube-scheduler "system:kube-scheduler"
# card    as server, for a card's containerd; one of --san is the address
#         that the host calls it by: a name alone would be refused there
# node    as client, DIR/NODE.crt for the advertiser of that node, who it is
#         to its cards.  A card obeys every certificate of the authority that
#         it was given: use one for cards that signs nothing else
# pair    a bare key pair DIR/FILE.key and DIR/FILE.pub, as for signing tokens
# show    what is in DIR, for whom, until when
#
# Keys are EC P-256, all files readable by their owner alone.  No file is
# ever written over: to renew, name another file (or remove the old one), put
# it in place, and the programs take it without a restart.  A certificate
# holds 365 days, an authority 3650, or as --days says.
#
# For a lab, all on one machine:
#
#   deploy/certs.sh ca pki
#   deploy/certs.sh server pki extender --san localhost --san 127.0.0.1
#   deploy/certs.sh client pki scheduler --cn system:kube-scheduler
#   deploy/certs.sh client pki host0 --cn system:node:host0
#
# For a node and its card:
#
#   deploy/certs.sh ca cards
#   deploy/certs.sh card cards host0-card0 --san 192.168.100.2
#   deploy/certs.sh node cards host0
set -eu
umask 077

fail() {
    echo "certs: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

fresh() { # FILE…: none may exist
    for file in "$@"; do
        [ ! -e "$file" ] || fail "$file exists; it is not written over"
    done
}

# The subject's form is /KEY=VALUE/…, where these would end the value.
plain() { # OPTION VALUE
    case $2 in
    '') fail "$1 must not be empty" ;;
    */* | *+* | *\\* | *,* | *'
'*) fail "$1 '$2': has one of / + , \\ or a line end" ;;
    esac
}

# An address is digits and dots or has a colon; all else is a name.
san_entry() { # NAME|ADDRESS
    case $1 in
    *[!A-Za-z0-9.:*_-]*) fail "--san '$1': is no name and no address" ;;
    *:*) echo "IP:$1" ;;
    *[!0-9.]*) echo "DNS:$1" ;;
    *) echo "IP:$1" ;;
    esac
}

[ $# -ge 1 ] || usage 2 >&2
case $1 in
-h | --help | help) usage 0 ;;
ca | server | client | card | node | pair | show) ;;
*) fail "there is no '$1'; certs.sh --help lists what there is" ;;
esac
[ $# -ge 2 ] || fail "$1 needs a DIR; certs.sh --help shows how"
command -v openssl >/dev/null || fail "there is no openssl"
verb=$1 dir=$2
shift 2

name=
case $verb in
server | client | card | node | pair)
    [ $# -ge 1 ] || fail "$verb needs a FILE"
    name=$1
    shift
    plain FILE "$name"
    case $name in
    -*) fail "$verb needs a FILE before $name" ;;
    esac
    ;;
esac

cn="" orgs="" sans="" days=""
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    plain "$1" "$2"
    case $1 in
    --cn)
        # X.509 has no room for more; longer names of nodes go into --san
        [ "${#2}" -le 64 ] ||
            fail "--cn '$2': has more than 64 characters; give a node's" \
                "long name with --san NODE and another --cn"
        cn=$2
        ;;
    --org) orgs="$orgs/O=$2" ;;
    --san)
        entry=$(san_entry "$2") || exit 1
        sans="$sans${sans:+,}$entry"
        ;;
    --days)
        expr "$2" : '-\{0,1\}[0-9]\{1,5\}$' >/dev/null ||
            fail "--days '$2': not a number of days"
        days=$2
        ;;
    *) fail "there is no $1" ;;
    esac
    shift 2
done

new_key() { # FILE
    openssl ecparam -name prime256v1 -genkey -noout -out "$1"
}

# Written aside and moved, so that nobody reads half a file.
signed() { # usage
    [ -e "$dir/ca.key" ] || fail "there is no $dir/ca.key: certs.sh ca $dir"
    fresh "$dir/$name.crt" "$dir/$name.key"
    tmp=$(mktemp -d "$dir/.new.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    new_key "$tmp/key"
    {
        echo "basicConstraints=critical,CA:FALSE"
        echo "keyUsage=critical,digitalSignature"
        echo "extendedKeyUsage=$1"
        [ -z "$sans" ] || echo "subjectAltName=$sans"
    } >"$tmp/extensions"
    openssl req -new -key "$tmp/key" -subj "$orgs/CN=$cn" -out "$tmp/csr"
    openssl x509 -req -in "$tmp/csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" \
        -set_serial "0x$(openssl rand -hex 16)" -days "${days:-365}" \
        -sha256 -extfile "$tmp/extensions" -out "$tmp/crt" 2>"$tmp/log" ||
        { cat "$tmp/log" >&2; exit 1; }
    chmod 600 "$tmp/key" "$tmp/crt"
    mv "$tmp/key" "$dir/$name.key"
    mv "$tmp/crt" "$dir/$name.crt"
}

case $verb in
ca)
    [ -z "$orgs$sans" ] || fail "an authority has --cn and --days only"
    mkdir -p "$dir"
    fresh "$dir/ca.crt" "$dir/ca.key"
    new_key "$dir/ca.key"
    openssl req -x509 -new -key "$dir/ca.key" -sha256 \
        -days "${days:-3650}" -subj "/CN=${cn:-biga-ca}" \
        -addext "keyUsage=critical,keyCertSign,cRLSign" -out "$dir/ca.crt"
    chmod 600 "$dir/ca.key" "$dir/ca.crt"
    ;;
server)
    [ -n "$sans" ] || fail "server needs --san NAME or ADDRESS"
    cn=${cn:-$name}
    signed serverAuth
    ;;
client)
    [ -n "$cn" ] || fail "client needs --cn NAME"
    signed clientAuth
    ;;
card)
    case ,$sans in
    *,IP:*) ;;
    *) fail "card needs --san ADDRESS: the host calls it by its address" ;;
    esac
    cn=${cn:-$name}
    signed serverAuth
    ;;
node)
    [ -z "$cn$orgs$sans" ] || fail "node has --days only"
    cn=system:node:$name
    # X.509 has no room for more in a common name
    if [ "${#cn}" -gt 64 ]; then
        sans=$(san_entry "$name") || exit 1
        cn=$(printf '%.64s' "$name")
    fi
    signed clientAuth
    ;;
pair)
    mkdir -p "$dir"
    fresh "$dir/$name.key" "$dir/$name.pub"
    new_key "$dir/$name.key"
    openssl ec -in "$dir/$name.key" -pubout -out "$dir/$name.pub" 2>/dev/null
    chmod 600 "$dir/$name.key" "$dir/$name.pub"
    ;;
show)
    for crt in "$dir"/*.crt; do
        [ -e "$crt" ] || fail "there is no certificate in $dir"
        printf '%s: ' "${crt##*/}"
        openssl x509 -in "$crt" -noout -subject -enddate -nameopt RFC2253 |
            tr '\n' ' '
        openssl x509 -in "$crt" -noout -ext subjectAltName 2>/dev/null |
            sed -n 's/^ *\(DNS\|IP\)/\1/p' | tr -d '\n'
        echo
    done
    ;;
esac
