#include "advertiser/act/card/helper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int helper_exec(struct cri *cri, const char *id, const char *const *argv,
                size_t n_argv, struct cri_exec *ret_exec, struct error *err)
{
    return cri_exec_sync(cri, id, argv, n_argv, HELPER_CALL_MS / 1000,
                         HELPER_CALL_MS, ret_exec, err);
}

int helper_run(struct cri *cri, const char *id, const struct helper_args *args,
               struct cri_exec *ret_exec, struct error *err)
{
    int e = helper_exec(cri, id, args->argv, args->n, ret_exec, err);
    if (e < 0)
        return e;
    return ret_exec->exit_code == 0
               ? 0
               : error_set(err, EIO,
                           "biga-card %s ended with exit code %d: %.300s",
                           args->argv[1], (int)ret_exec->exit_code,
                           str_text(&ret_exec->err));
}

void helper_exec_wipe(struct cri_exec *exec)
{
    if (exec->out.data)
        explicit_bzero(exec->out.data, exec->out.size);
    str_fini(&exec->out);
    str_fini(&exec->err);
}

/* The number behind the last "name=" there; false when there is none. */
static bool last_number(const char *text, const char *name, uint64_t *ret_value)
{
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, name));)
        last = at += strlen(name);
    char *end = NULL;
    errno = 0;
    unsigned long long value = last ? strtoull(last, &end, 10) : 0;
    if (!last || end == last || errno)
        return false;
    *ret_value = value;
    return true;
}

int helper_next(const struct cri_exec *exec, uint64_t *ret_next,
                struct error *err)
{
    const char *text = str_text(&exec->err);
    uint64_t next, given;
    if (!last_number(text, "next=", &next))
        return error_set(err, EPROTO, "biga-card: no offset in \"%.200s\"",
                         text);
    if (last_number(text, "bytes=", &given) && given != exec->out.size)
        return error_set(err, EPROTO,
                         "biga-card gave %" PRIu64 " bytes of a log, and %zu "
                         "came: its runtime drops what commands write",
                         given, exec->out.size);
    *ret_next = next;
    return 0;
}
