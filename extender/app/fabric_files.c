#include "extender/app/fabric_files.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/io/watch.h"

struct fabric_files {
    struct watched_file files[FABRIC_SOURCES_MAX];
    struct str texts[FABRIC_SOURCES_MAX]; /* empty but while they are read */
    bool fresh[FABRIC_SOURCES_MAX];       /* texts: what the file has now */
    size_t n;
    struct fabric_labels labels;
    struct writer *writer;
    struct metrics *metrics;
    struct fabric_nodes nodes; /* all NULL: none */
    struct str nodes_text;     /* empty but while it is read */
    pthread_mutex_t reading;   /* one at a time; guards all above */
    pthread_mutex_t lock;      /* guards what follows */
    struct error error;        /* code 0: none */
};

/* --- reading ------------------------------------------------------------ */

/* 1: some file is another than before, and all texts are there. */
static int read_texts(struct fabric_files *f, struct error *err)
{
    bool changed = f->nodes.changed && f->nodes.changed(f->nodes.ctx);
    for (size_t i = 0; i < f->n; i++) {
        int r = watch_poll(&f->files[i], &f->texts[i], err);
        if (r < 0)
            return r;
        f->fresh[i] = r > 0;
        changed = changed || r > 0;
    }
    for (size_t i = 0; i < f->n && changed; i++) {
        if (f->fresh[i])
            continue;
        f->files[i].looked = false; /* take it for another one */
        int r = watch_poll(&f->files[i], &f->texts[i], err);
        if (r < 0)
            return r;
    }
    if (changed && f->nodes.write)
        f->nodes.write(f->nodes.ctx, &f->nodes_text);
    return changed;
}

/* What there is to read, into `sources`; the number of them. */
static size_t list_sources(const struct fabric_files *f,
                           struct fabric_source sources[FABRIC_SOURCES_MAX])
{
    size_t n = 0;
    for (; n < f->n; n++)
        sources[n] = (struct fabric_source){.name = f->files[n].path,
                                            .text = str_text(&f->texts[n]),
                                            .size = f->texts[n].size};
    if (f->nodes_text.size && n < FABRIC_SOURCES_MAX)
        sources[n++] = (struct fabric_source){
            .name = "labels of nodes",
            .text = str_text(&f->nodes_text),
            .size = f->nodes_text.size,
            .format = FABRIC_LABELS,
        };
    return n;
}

/* 1 and the fabric, when a file is another one; 0 when none is. */
static int files_read(struct fabric_files *f, struct fabric **ret_fabric,
                      struct error *err)
{
    struct fabric_source sources[FABRIC_SOURCES_MAX] = {0};
    for (size_t i = 0; i < f->n; i++)
        str_init(&f->texts[i], FABRIC_TEXT_MAX + 1);
    str_init(&f->nodes_text, FABRIC_TEXT_MAX + 1);
    int r = read_texts(f, err);
    if (r > 0 && fabric_read(sources, list_sources(f, sources), &f->labels,
                             ret_fabric, err) < 0)
        r = -EINVAL;
    str_fini(&f->nodes_text);
    for (size_t i = 0; i < f->n; i++)
        str_fini(&f->texts[i]);
    return r;
}

static int add_paths(struct fabric_files *f, const char *list,
                     struct error *err)
{
    for (const char *p = list; *p;) {
        size_t size = strcspn(p, ",");
        if (f->n == FABRIC_SOURCES_MAX)
            return error_set(err, EINVAL, "fabric: more than %d files",
                             FABRIC_SOURCES_MAX);
        if (size == 0)
            return error_set(err, EINVAL,
                             "fabric: \"%.64s\": a file's name is empty", list);
        cleanup_free char *path = xstrndup(p, size);
        watch_init(&f->files[f->n++], path, FABRIC_TEXT_MAX);
        p += size;
        p += *p == ',';
    }
    return 0;
}

int fabric_files_open(const char *list, const char *labels,
                      struct fabric_files **ret_files,
                      struct fabric **ret_fabric, struct error *err)
{
    struct fabric_files *f = xcalloc(1, sizeof *f);
    /* never fail on Linux */
    (void)pthread_mutex_init(&f->reading, NULL);
    (void)pthread_mutex_init(&f->lock, NULL);
    int r = add_paths(f, list, err);
    if (r == 0 &&
        fabric_labels_parse(labels ? labels : "", &f->labels, err) < 0)
        r = error_wrap(err, "fabric-labels");
    if (r == 0)
        r = files_read(f, ret_fabric, err);
    if (r < 0) {
        fabric_files_close(f);
        return r;
    }
    *ret_files = f;
    return 0;
}

void fabric_files_close(struct fabric_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        watch_fini(&f->files[i]);
    (void)pthread_mutex_destroy(&f->reading);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

/* --- following ---------------------------------------------------------- */

static void log_fabric(struct writer *writer)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    char hash[17], hosts[24], domains[24], tiers[24], unknown[24];
    size_t n_unknown = 0;
    for (size_t i = 0; i < s->n_nodes; i++)
        n_unknown += snapshot_leaf(s, i) == FABRIC_NONE;
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, fabric_hash(s->fabric));
    (void)snprintf(hosts, sizeof hosts, "%zu", fabric_n_hosts(s->fabric));
    (void)snprintf(domains, sizeof domains, "%zu", fabric_n_domains(s->fabric));
    (void)snprintf(tiers, sizeof tiers, "%u", fabric_n_tiers(s->fabric));
    (void)snprintf(unknown, sizeof unknown, "%zu", n_unknown);
    log_event(LOG_INFO, "fabric", "hash", hash, "tiers", tiers, "domains",
              domains, "hosts", hosts, "unknown-nodes", unknown, NULL);
}

void fabric_files_serve(struct fabric_files *f, struct writer *writer,
                        struct metrics *metrics)
{
    f->writer = writer;
    f->metrics = metrics;
    metrics_count(metrics, APP_FABRIC_READS, "accepted");
    log_fabric(writer);
}

void fabric_files_join(struct fabric_files *f, const struct fabric_nodes *nodes)
{
    hold_lock(&f->reading);
    f->nodes = *nodes;
}

const struct fabric_labels *fabric_files_labels(const struct fabric_files *f)
{
    return &f->labels;
}

static void poll_files(struct fabric_files *f)
{
    cleanup_with(fabric) struct fabric *fabric = NULL;
    struct error err = {0};
    int r = files_read(f, &fabric, &err);
    if (r == 0)
        return;
    pthread_mutex_lock(&f->lock);
    f->error = err;
    pthread_mutex_unlock(&f->lock);
    metrics_count(f->metrics, APP_FABRIC_READS, r < 0 ? "refused" : "accepted");
    if (r < 0) {
        log_event(LOG_ERROR, "fabric-refused", "error", err.text, "in-force",
                  "the fabric before", NULL);
        return;
    }
    struct writer_op op = {.kind = WRITER_SET_FABRIC, .fabric = fabric};
    (void)writer_run(f->writer, &op); /* it has no result */
    log_fabric(f->writer);
}

void fabric_files_poll(void *ctx)
{
    struct fabric_files *f = ctx;
    hold_lock(&f->reading);
    poll_files(f);
}

size_t fabric_files_count(const struct fabric_files *f)
{
    return f ? f->n : 0;
}

const char *fabric_files_path(const struct fabric_files *f, size_t i)
{
    return f->files[i].path;
}

void fabric_files_error(struct fabric_files *f, struct str *out)
{
    hold_lock(&f->lock);
    if (f->error.code)
        str_add(out, f->error.text);
}
