#include "extender/app/policy_file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "extender/app/app_metrics.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/io/watch.h"

struct policy_file {
    struct watched_file file;
    struct writer *writer;
    struct metrics *metrics;
    pthread_mutex_t lock; /* guards what follows */
    struct error error;   /* code 0: none */
};

static void note_error(struct policy_file *f, const struct error *error)
{
    hold_lock(&f->lock);
    f->error = *error;
}

/* 1 and the policy, when the file is another one; 0 when it is not. */
static int policy_file_read(struct policy_file *f, struct policy **ret_policy,
                            struct error *err)
{
    cleanup_str struct str text = STR_INIT(POLICY_TEXT_MAX + 1);
    int r = watch_poll(&f->file, &text, err);
    if (r <= 0)
        return r;
    r = policy_read(str_text(&text), text.size, ret_policy, err);
    if (r < 0)
        return error_wrap(err, "%s", f->file.path);
    return 1;
}

int policy_file_open(const char *path, struct policy_file **ret_file,
                     struct policy **ret_policy, struct error *err)
{
    struct policy_file *f = xcalloc(1, sizeof *f);
    watch_init(&f->file, path, POLICY_TEXT_MAX);
    pthread_mutex_init(&f->lock, NULL);
    int r = policy_file_read(f, ret_policy, err);
    if (r < 0) {
        policy_file_close(f);
        return r;
    }
    *ret_file = f;
    return 0;
}

void policy_file_close(struct policy_file *f)
{
    if (!f)
        return;
    watch_fini(&f->file);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* What is in force now, and which shares find no room. */
static void log_policy(struct writer *writer)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    size_t counts[SHARE_STATES];
    char hash[17], quotas[24], services[24], states[SHARE_STATES][24];
    if (!s->policy)
        return;
    snapshot_count_shares(s, counts);
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, s->policy->hash);
    (void)snprintf(quotas, sizeof quotas, "%zu", s->policy->n_quotas);
    (void)snprintf(services, sizeof services, "%zu", s->policy->n_services);
    for (size_t i = 0; i < SHARE_STATES; i++)
        (void)snprintf(states[i], sizeof states[i], "%zu", counts[i]);
    log_event(counts[SHARE_SHORT] || counts[SHARE_NEVER] ? LOG_WARN : LOG_INFO,
              "policy", "hash", hash, "quotas", quotas, "services", services,
              "shares-held", states[SHARE_HELD], "shares-short",
              states[SHARE_SHORT], "shares-never", states[SHARE_NEVER], NULL);
}

void policy_file_serve(struct policy_file *f, struct writer *writer,
                       struct metrics *metrics)
{
    f->writer = writer;
    f->metrics = metrics;
    metrics_count(metrics, APP_POLICY_READS, "accepted");
    log_policy(writer);
}

void policy_file_poll(void *ctx)
{
    struct policy_file *f = ctx;
    cleanup_with(policy) struct policy *policy = NULL;
    struct error err = {0};
    int r = policy_file_read(f, &policy, &err);
    if (r == 0)
        return;
    note_error(f, &err);
    metrics_count(f->metrics, APP_POLICY_READS, r < 0 ? "refused" : "accepted");
    if (r < 0) {
        log_event(LOG_ERROR, "policy-refused", "error", err.text, "in-force",
                  "the policy before", NULL);
        return;
    }
    struct writer_op op = {.kind = WRITER_SET_POLICY, .policy = policy};
    (void)writer_run(f->writer, &op); /* it has no result */
    log_policy(f->writer);
}

const char *policy_file_path(const struct policy_file *f)
{
    return f->file.path;
}

void policy_file_error(struct policy_file *f, struct str *out)
{
    hold_lock(&f->lock);
    if (f->error.code)
        str_add(out, f->error.text);
}
