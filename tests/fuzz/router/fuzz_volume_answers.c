/* Any bytes as the answers of biga-card on a hostile remote: no crash; what is
 * taken from them is below the pod, within its size, and a name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "router/volume/volume_send.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LAST_MAX = 4096, NAMES_MAX = 1 << 20 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

struct answer {
    struct proto_bytes out, err;
    int32_t code;
};

static int answer(void *ctx, const char *remote, unsigned lane,
                  const char *const *argv, size_t n_argv, unsigned ms,
                  struct cri_exec *ret_exec, struct error *err)
{
    const struct answer *a = ctx;
    (void)remote;
    (void)lane;
    (void)argv;
    (void)n_argv;
    (void)ms;
    (void)err;
    ret_exec->exit_code = a->code;
    str_init(&ret_exec->out, NAMES_MAX);
    str_init(&ret_exec->err, NAMES_MAX);
    str_add_n(&ret_exec->out, a->out.data, a->out.size);
    str_add_n(&ret_exec->err, a->err.data, a->err.size);
    return 0;
}

static int try_plan(const struct volume_place *place, struct error *err)
{
    static const struct volume_item item = {.name = "",
                                            .type = VOLUME_FILE,
                                            .mode = 0644,
                                            .data = "hidden",
                                            .size = 6};
    struct volume_plan plan = {0};
    volume_plan_file(&plan, "memory/volumes/s", &item, NULL);
    int rc = volume_send_plan(place, &plan, err);
    volume_plan_fini(&plan);
    return rc;
}

static int try_pods(const struct volume_place *place, struct error *err)
{
    cleanup_str struct str names = STR_INIT(NAMES_MAX);
    int rc = volume_send_pods(place, &names, err);
    const char *at = str_text(&names), *end = at + names.size;
    for (; rc == 0 && at < end; at += strlen(at) + 1)
        must(volume_name_ok(at) && !strchr(at, '/'));
    return rc;
}

static int try_one(unsigned which, const struct volume_place *place,
                   struct error *err)
{
    cleanup_str struct str text = STR_INIT(NAMES_MAX);
    struct volume_tree tree = {0};
    int rc;
    switch (which) {
    case 0:
        rc = volume_send_look(place, &tree, err);
        volume_tree_fini(&tree);
        return rc;
    case 1:
        rc = volume_send_last(place, "disk/containers/c/1", LAST_MAX, &text,
                              err);
        must(text.size <= LAST_MAX && (rc == 0 || text.size == 0));
        return rc;
    case 2:
        return try_pods(place, err);
    case 3:
        return try_plan(place, err);
    default:
        return volume_send_remove(place, err);
    }
}

/* The first bytes: what is asked, how it ends, and the size of its errors. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    if (size < 3)
        return 0;
    const char *rest = (const char *)data + 3;
    size_t n_err = data[2] < size - 3 ? data[2] : size - 3;
    struct answer a = {.out = {rest + n_err, size - 3 - n_err},
                       .err = {rest, n_err},
                       .code = data[1]};
    const struct volume_place place = {.exec = answer,
                                       .ctx = &a,
                                       .remote = "card-0",
                                       .disk = "/var/lib/biga/pods/u-1",
                                       .memory = "/dev/shm/biga/u-1"};
    int rc = try_one(data[0] % 5, &place, &err);
    must(rc == 0 || (err.code == -rc && err.text[0]));
    return 0;
}
