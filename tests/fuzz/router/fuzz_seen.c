/* Any bytes as the two lists of a hostile remote, to a map that has lost its
 * own record and so believes most: what is written down afterwards is of that
 * remote, and of the home's files only logs of pods. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "router/keep/keep.h"
#include "router/wire/method.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LOGS "/var/log/pods"

static void must(bool holds)
{
    if (!holds)
        abort();
}

struct reading {
    struct seen *seen;
    bool sandbox;
};

static void take(void *ctx, const struct found *found)
{
    const struct reading *r = ctx;
    (void)seen_add(r->seen, found, r->sandbox);
}

static void read_list(struct seen *seen, enum method_id method,
                      struct proto_bytes reply)
{
    const struct cri_pairs any = {0};
    struct reading r = {seen, method == METHOD_LIST_POD_SANDBOX};
    (void)found_read(method_get(method), reply, any, take, &r, NULL);
}

static void check(const struct kept *k, const struct keep_view *v)
{
    const struct kept *sandbox = keep_view_find(v, k->sandbox_id);
    must(strcmp(k->remote, "card-0") == 0 && kept_id_valid(k->id));
    must(!*k->log_path || strncmp(k->log_path, LOGS "/", 14) == 0);
    must(!*k->log_directory || strncmp(k->log_directory, LOGS "/", 14) == 0);
    must(!strstr(k->log_path, "/../") && k->mounts.size == 0);
    must(k->kind == KEPT_SANDBOX || (sandbox && sandbox->kind == KEPT_SANDBOX &&
                                     strcmp(sandbox->uid, k->uid) == 0));
}

/* Until nothing more is asked for, as the thread of a remote has it. */
static void see(struct keep *k, struct seen *seen)
{
    struct keep_found found;
    uint64_t mark = keep_mark(k);
    do {
        must(keep_seen(k, "card-0", mark, seen, &found, NULL) == 0);
        for (size_t i = 0; i < seen->n; i++)
            seen->list[i].ours |= seen->list[i].asked;
        must(found.n_asked <= KEEP_ASKED_MAX);
    } while (found.n_asked > 0);
}

/* The first two bytes are the size of the list of sandboxes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct keep_config config = {.pod_logs = LOGS};
    cleanup_with(keep) struct keep *k = NULL;
    struct seen seen = {0};
    if (size < 2)
        return 0;
    size_t n = (size_t)data[0] << 8 | data[1];
    n = n < size - 2 ? n : size - 2;
    const char *rest = (const char *)data + 2;
    log_set_level((enum log_level)(LOG_ERROR + 1));
    must(keep_open(&config, &k, NULL) == 0);
    read_list(&seen, METHOD_LIST_POD_SANDBOX, (struct proto_bytes){rest, n});
    read_list(&seen, METHOD_LIST_CONTAINERS,
              (struct proto_bytes){rest + n, size - 2 - n});
    seen_sort(&seen);
    see(k, &seen);
    cleanup_with(keep_view) struct keep_view *v = keep_view(k);
    for (size_t i = 0; i < keep_view_count(v); i++)
        check(keep_view_at(v, i), v);
    seen_fini(&seen);
    return 0;
}
