#!/bin/bash
# deploy/certs.sh: what it makes is what TLS wants, and it spoils nothing.
set -u
command -v openssl >/dev/null || { echo "there is no openssl"; exit 77; }
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
pki=$work/pki
run() {
    deploy/certs.sh "$@" && echo "done"
}
text() { # FILE: the certificate in words
    openssl x509 -in "$pki/$1.crt" -noout -text
}
verify() { # FILE PURPOSE
    openssl verify -CAfile "$pki/ca.crt" -purpose "$2" "$pki/$1.crt"
}

check "without a word it says how it is used" 2 "certs.sh ca" run
check "an authority has to be there first" 1 "certs.sh ca" \
    run client "$work" early --cn early
check "it makes an authority" 0 "^done$" run ca "$pki" --cn lab
check "and no second over it" 1 "ca.crt exists" run ca "$pki"
check "a server needs names" 1 "needs --san" run server "$pki" extender
check "it makes a server's certificate" 0 "^done$" run server "$pki" extender \
    --san extender.example --san 127.0.0.1 --san ::1
check "which is valid for names and addresses" 0 \
    "DNS:extender.example, IP Address:127.0.0.1, IP Address:0:0" text extender
check "and for a server" 0 "OK" verify extender sslserver
check "but not for a client" 2 "purpose" verify extender sslclient
check "it makes a client's certificate" 0 "^done$" run client "$pki" host0 \
    --cn system:node:host0 --org biga:advertisers --org other
check "which says who that is" 0 \
    "O = biga:advertisers, O = other, CN = system:node:host0" text host0
check "for a client" 0 "OK" verify host0 sslclient
check "and not for a server" 2 "purpose" verify host0 sslserver
check "and no authority itself" 0 "CA:FALSE" text host0
check "no file is written over" 1 "host0.crt exists" run client "$pki" host0 \
    --cn other
check "not even a key alone" 1 "lone.key exists" \
    bash -c "touch $pki/lone.key; deploy/certs.sh client $pki lone --cn x"
rm "$pki/lone.key"
check "a name cannot add to itself" 1 "has one of" \
    run client "$pki" evil --cn "x/O=system:masters"
check "an empty name is refused" 1 "must not be empty" \
    run client "$pki" evil --cn ""
check "a file name is one name" 1 "has one of" \
    run client "$pki" ../evil --cn x
check "an option is no file name" 1 "needs a FILE before --cn" \
    run client "$pki" --cn x
check "a name is one word" 1 "no name and no address" \
    run server "$pki" evil --san "a b"
check "X.509 has no room for long names" 1 "more than 64 characters" \
    run client "$pki" evil --cn "system:node:$(printf '%053d' 0)"
check "an unknown word is refused" 1 "there is no 'renew'" run renew "$pki"
check "days are a number" 1 "not a number of days" \
    run client "$pki" evil --cn x --days soon
check "an unknown option is refused" 1 "there is no --key-size" \
    run client "$pki" evil --cn x --key-size 1024
check "it makes one that has expired, for tests" 0 "^done$" \
    run client "$pki" old --cn old --days -1
check "which nobody takes" 2 "expired" verify old sslclient
check "it makes a card's certificate" 0 "^done$" run card "$pki" card0 \
    --san 192.168.100.2
check "which is valid for its address" 0 "IP Address:192.168.100.2" text card0
check "and for a server" 0 "OK" verify card0 sslserver
check "a card is called by its address" 1 "needs --san ADDRESS" \
    run card "$pki" card1 --san card1.example
check "it makes a node's certificate for its cards" 0 "^done$" \
    run node "$pki" host1
check "which says which node" 0 "CN = system:node:host1" text host1
check "and is for a client" 0 "OK" verify host1 sslclient
check "a node is its name alone" 1 "has --days only" \
    run node "$pki" host2 --cn other
check "it makes a bare key pair" 0 "^done$" run pair "$pki" sa
check "with a public half" 0 "BEGIN PUBLIC KEY" cat "$pki/sa.pub"
check "it shows what there is" 0 "host0.crt: .*system:node:host0.*notAfter" \
    run show "$pki"
check "all files are their owner's alone" 0 "^600$" \
    bash -c "stat -c %a $pki/*.* | sort -u | paste -sd' '"
check "nothing is left beside them" 0 "^0$" \
    bash -c "find $pki -name '.new*' | wc -l"
exit $bad
