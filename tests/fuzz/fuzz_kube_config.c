/* Any text as a kubeconfig: refused with a reason, or a configuration that has
 * what callers rely on. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "lib/kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(kube_config) struct kube_config *c = NULL;
    struct error err = {0};
    int r = kube_config_parse((const char *)data, size, "/d", &c, &err);
    if (r < 0) {
        assert(r == -EINVAL && err.text[0] && !c);
        return 0;
    }
    assert(strncasecmp(c->server, "https://", 8) == 0 ||
           strncasecmp(c->server, "http://", 7) == 0);
    assert(c->namespace && *c->namespace);
    assert((c->cert_file || c->cert_pem) == (c->key_file || c->key_pem));
    const char *const pems[] = {c->ca_pem, c->cert_pem, c->key_pem};
    for (size_t i = 0; i < ARRAY_LEN(pems); i++)
        assert(!pems[i] || strstr(pems[i], "-----BEGIN "));
    const char *const files[] = {c->ca_file, c->cert_file, c->key_file,
                                 c->token_file};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        assert(!files[i] || files[i][0] == '/');
    return 0;
}
