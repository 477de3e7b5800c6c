/* A certificate that a client shows: whatever it is, its names come out as
 * printable texts within their limits. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/http/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    size_t size = strnlen(name, TLS_NAME_MAX + 1);
    assert(size <= TLS_NAME_MAX);
    for (size_t i = 0; i < size; i++)
        assert(name[i] >= ' ' && name[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tls_peer peer;
    char node[TLS_NAME_MAX + 1];
    struct error err = {0};
    if (tls_peer_read(data, size, &peer, &err) < 0) {
        assert(err.code == EINVAL && err.text[0]);
        return 0;
    }
    check_name(peer.common_name);
    assert(peer.n_organizations <= ARRAY_LEN(peer.organizations));
    for (unsigned i = 0; i < peer.n_organizations; i++)
        check_name(peer.organizations[i]);
    assert(peer.n_dns <= TLS_NAMES_MAX);
    for (unsigned i = 0; i < peer.n_dns; i++)
        check_name(peer.dns[i]);
    if (tls_peer_node(&peer, node)) {
        check_name(node);
        assert(*node);
    }
    return 0;
}
