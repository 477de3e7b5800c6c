/* kube-scheduler's requests: what is taken must be answerable with JSON, and
 * what is refused must say why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/wire/wire.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

static void check_json(const struct str *out)
{
    struct error err = {0};
    need(json_check(str_text(out), out->size, &err) == 0 ||
         /* echoed nodes may hold what we do not look at: equal keys */
         strstr(err.text, "duplicate key") ||
         strstr(err.text, "nested too deep"));
}

#define NODES(name) \
    name "1", name "2", name "3", name "4", name "5", name "6", name "7"

/* Every name as if it was looked up by itself. */
static void check_indexes(const struct wire_args *a,
                          const struct roster *roster)
{
    for (size_t i = 0; i < a->n; i++) {
        cleanup_free char *name = xmalloc(a->names[i].size + 1);
        size_t size = jtext_decode(&a->names[i], name);
        need(a->indexes[i] == roster_find(roster, name, size));
    }
}

static void try_args(const char *body, size_t size,
                     const struct demand_config *config)
{
    static const char *const names[] = {
        NODES("a"),
        NODES("host-"),
        NODES("m"),
        NODES("n"),
        NODES("node-"),
        NODES("o"),
        NODES("zone-z-rack-1-node-of-a-long-name-")};
    struct roster *roster = roster_create(names, ARRAY_LEN(names));
    struct wire_args a = {0};
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    int r = wire_read_args(body, size, config, roster, &a, &err);
    need(r == 0 || (err.text[0] && (r == -EINVAL || r == -EDOM)));
    if (r == 0) {
        check_indexes(&a, roster);
        cleanup_free uint32_t *all = xcalloc(a.n, sizeof *all);
        cleanup_free uint8_t *scores = xcalloc(a.n, 1);
        for (size_t i = 0; i < a.n; i++) {
            need(a.names[i].data >= body &&
                 a.names[i].data + a.names[i].size <= body + size);
            all[i] = (uint32_t)i;
        }
        wire_write_fitting(&a, all, a.n, &out);
        check_json(&out);
        str_reset(&out);
        wire_write_priorities(a.names, scores, a.n, &out);
        check_json(&out);
    }
    wire_args_fini(&a);
    roster_unref(roster);
}

static void try_preemption(const char *body, size_t size,
                           const struct demand_config *config)
{
    struct wire_preemption p = {0};
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    int r = wire_read_preemption(body, size, config, &p, &err);
    need(r == 0 || err.text[0]);
    if (r == 0) {
        static const char *const uid[] = {"uid"};
        cleanup_free struct wire_named *named = xcalloc(p.n_nodes,
                                                        sizeof *named);
        for (size_t i = 0; i < p.n_nodes; i++)
            named[i] = (struct wire_named){
                .keep = true, .instead = i % 3 == 2, .uids = uid, .n = i % 2};
        wire_write_preemption(&p, named, &out);
        check_json(&out);
    }
    wire_preemption_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct demand_config config;
    struct wire_binding binding;
    struct error err = {0};
    cleanup_free char *body = xmemdup(data, size);
    demand_config_default(&config);
    try_args(body, size, &config);
    try_preemption(body, size, &config);
    if (wire_read_binding(body, size, &binding, &err) < 0)
        need(err.text[0] != '\0');
    return 0;
}
