/* What a pod asks of its card before it starts (schema/pod.md): virtual
 * functions, and the operator's hook. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/prep/prep.h"
#include "router/serve/serve_job.h"
#include "router/wire/edit.h"

/* The value of an annotation of the sandbox that is asked for; NULL: it has
 * none.  The caller frees it. */
static char *annotation(struct job *j, const char *key)
{
    struct proto_bytes config = edit_bytes(job_message(j),
                                           CRI_RunPodSandboxRequest_config);
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, config);
    while (proto_next(&r, &f, NULL) > 0) {
        if (f.number != CRI_PodSandboxConfig_annotations ||
            !edit_is_key(&f, key))
            continue;
        struct proto_bytes value = edit_bytes(f.bytes, 2);
        return xstrndup(value.size ? value.data : "", value.size);
    }
    return NULL;
}

static int read_vfs(struct job *j, int *ret_vfs, struct error *err)
{
    cleanup_free char *text = annotation(j, PREPARE_VFS);
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : -1;
    if (text && (end == text || *end || n < 0 || n > PREPARE_VFS_MAX))
        return job_refuse(j, err, GRPC_INVALID_ARGUMENT, "SpecRefused",
                          PREPARE_VFS ": is \"%.40s\", must be 0 to %d", text,
                          PREPARE_VFS_MAX);
    *ret_vfs = (int)n;
    return 0;
}

static bool goes_on(void *ctx)
{
    return grpcd_call_cancelled(ctx) == 0;
}

/* Other pods on the card, which may use its functions. */
static bool in_use(struct job *j)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(j->s->keep);
    const char *name = remote_name(j->far->remote);
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (strcmp(k->remote, name) == 0 && strcmp(k->uid, j->req.pod.uid) != 0)
            return true;
    }
    return false;
}

static int prepare(struct job *j, const struct prep_request *given,
                   struct error *err)
{
    const struct serve_config *c = &j->s->config;
    const struct prep_config config = {.hooks_dir = *c->hooks ? c->hooks : NULL,
                                       .dir = c->state};
    struct prep_outcome outcome = {0};
    struct prep_request request = *given;
    /* a hook may take ten minutes; the kubelet asks again */
    if (pthread_mutex_trylock(&j->far->preparing) != 0)
        return job_refuse(j, err, GRPC_UNAVAILABLE, "WaitsForCard",
                          "%s is being prepared for another pod", request.card);
    request.in_use = in_use(j);
    int r = prep_run(&config, &request, &outcome, err);
    (void)pthread_mutex_unlock(&j->far->preparing);
    struct error why = *err;
    if (r < 0)
        return job_refuse(j, err, GRPC_UNAVAILABLE, "PrepareFailed", "%s",
                          why.text);
    return outcome.reason[0] ? job_refuse(j, err, GRPC_FAILED_PRECONDITION,
                                          outcome.reason, "%s", outcome.message)
                             : 0;
}

int serve_prepare_card(struct job *j, struct error *err)
{
    const struct act_place *p = remote_place(j->far->remote);
    cleanup_free char *hook = annotation(j, PREPARE_HOOK);
    struct prep_request request = {
        .card = p->name,
        .pci = p->pci,
        .namespace = j->req.pod.namespace,
        .pod = j->req.pod.name,
        .hook = hook,
        .keep = goes_on,
        .ctx = j->call,
    };
    cleanup_free char *sfs = annotation(j, PREPARE_SFS);
    if (sfs && strcmp(sfs, "0") != 0 && !card_is_host(p))
        return job_refuse(j, err, GRPC_INVALID_ARGUMENT, "SpecRefused",
                          PREPARE_SFS ": is \"%.40s\"; under a kubelet no "
                                      "scalable functions are made",
                          sfs);
    int r = read_vfs(j, &request.sriov_vfs, err);
    if (r < 0 || card_is_host(p) || (request.sriov_vfs < 0 && !hook))
        return r;
    if (hook && !prepare_hook_ok(hook))
        return job_refuse(j, err, GRPC_INVALID_ARGUMENT, "SpecRefused",
                          PREPARE_HOOK
                          ": is \"%.80s\", must be 1 to %d of a to z, 0 to 9 "
                          "and '-'",
                          hook, PREPARE_HOOK_MAX);
    return prepare(j, &request, err);
}
