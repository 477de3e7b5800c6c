#include "bench/replay/trace.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "lib/base/json.h"
#include "model/pod/demand.h"

enum {
    SWF_FIELDS = 18,
    SWF_SUBMIT = 1,
    SWF_RUN = 3,
    SWF_ALLOCATED = 4,
    SWF_REQUESTED = 7,
};

void trace_fini(struct trace *t)
{
    free(t->jobs);
    *t = (struct trace){0};
}

/* --- what both forms share ---------------------------------------------- */

/* A line as it was read, before its limits are looked at. */
struct record {
    double arrival_s, duration_s, pairs;
    int64_t cards;
    int64_t card_cores, card_memory_mib, cpu_milli, memory_mib;
};

static int64_t to_us(double seconds)
{
    return (int64_t)llround(seconds * 1e6);
}

static int trace_add(struct trace *t, const struct record *r, struct error *err)
{
    if (r->cards == 0) {
        t->n_no_card++;
        return 0;
    }
    if (r->duration_s <= 0) {
        t->n_no_time++;
        return 0;
    }
    if (t->n == TRACE_JOBS_MAX)
        return error_set(err, E2BIG, "has more than %d jobs", TRACE_JOBS_MAX);
    t->jobs = xgrow(t->jobs, t->n, &t->cap, sizeof *t->jobs);
    t->jobs[t->n++] = (struct replay_job){
        .arrival_us = to_us(r->arrival_s),
        .duration_us = to_us(r->duration_s) ? to_us(r->duration_s) : 1,
        .pairs = (uint32_t)r->pairs,
        .cards = (uint8_t)r->cards,
        .card_cores = (uint16_t)r->card_cores,
        .card_memory_mib = (uint32_t)r->card_memory_mib,
        .cpu_milli = (uint32_t)r->cpu_milli,
        .memory_mib = (uint32_t)r->memory_mib,
    };
    return 0;
}

/* --- JSONL -------------------------------------------------------------- */

/* A required number of seconds. */
static double read_seconds(struct reader *r, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(r->json, name);
    if (!x)
        reader_fail(r, name, "required member missing");
    else if (!cJSON_IsNumber(x) || !(x->valuedouble >= 0) ||
             x->valuedouble > TRACE_TIME_MAX_S)
        reader_fail(r, name, "must be a number of seconds, 0 to %.0f",
                    TRACE_TIME_MAX_S);
    else
        return x->valuedouble;
    return 0;
}

/* One rank's part of what a node's `per` ranks have together, rounded up. */
static int64_t read_part(struct reader *r, const char *name, int64_t max,
                         int64_t per)
{
    int64_t all = reader_opt_int(r, name, 0, max, 0);
    return r->failed ? 0 : (all + per - 1) / per;
}

static int read_json_line(const char *line, size_t size, struct trace *t,
                          struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    struct reader r;
    int rc = json_parse(line, size, &json, err);
    if (rc < 0)
        return rc;
    reader_init(&r, json, "", err);
    struct record record = {
        .arrival_s = read_seconds(&r, "arrival_s"),
        .duration_s = read_seconds(&r, "duration_s"),
        .cards = reader_opt_int(&r, "devices_per_rank", 0, TOPO_CARDS_MAX, 1),
        .card_cores = reader_opt_int(&r, "card_cores", 0, TRACE_CORES_MAX, 0),
        .card_memory_mib = reader_opt_int(&r, "card_memory_mib", 0,
                                          TRACE_MEMORY_MAX, 0),
    };
    int64_t nodes = reader_opt_int(&r, "nodes", 1, DEMAND_SIZE_MAX, 1);
    int64_t per = reader_opt_int(&r, "ranks_per_node", 1, DEMAND_SIZE_MAX, 1);
    if (!r.failed && nodes * per > DEMAND_SIZE_MAX)
        reader_fail(&r, "nodes",
                    "is %lld, with ranks_per_node %lld that are %lld pairs; a "
                    "job may have %d",
                    (long long)nodes, (long long)per, (long long)(nodes * per),
                    DEMAND_SIZE_MAX);
    record.pairs = (double)(nodes * per);
    record.cpu_milli = read_part(&r, "cpu_milli", TRACE_CPU_MAX, per);
    record.memory_mib = read_part(&r, "memory_mib", TRACE_MEMORY_MAX, per);
    rc = reader_finish_lenient(&r);
    return rc < 0 ? rc : trace_add(t, &record, err);
}

/* --- SWF ---------------------------------------------------------------- */

static int read_swf_line(const char *line, size_t size, struct trace *t,
                         struct error *err)
{
    cleanup_free char *text = xstrndup(line, size);
    double field[SWF_FIELDS];
    int n = 0;
    for (char *p = text; *(p += strspn(p, " \t")); n++) {
        char *end;
        double value = strtod(p, &end);
        size_t len = strcspn(p, " \t");
        if (end == p || (*end && !strchr(" \t", *end)) || !isfinite(value))
            return error_set(err, EINVAL,
                             "field %d: is \"%.*s\", must be a number", n + 1,
                             (int)(len < 32 ? len : 32), p);
        if (n < SWF_FIELDS)
            field[n] = value;
        p = end;
    }
    if (n != SWF_FIELDS)
        return error_set(err, EINVAL, "has %d fields, must have %d", n,
                         SWF_FIELDS);
    struct record r = {.arrival_s = field[SWF_SUBMIT],
                       .duration_s = field[SWF_RUN],
                       .pairs = field[SWF_REQUESTED],
                       .cards = 1};
    if (r.pairs < 0)
        r.pairs = field[SWF_ALLOCATED];
    if (r.arrival_s < 0 || r.arrival_s > TRACE_TIME_MAX_S ||
        r.duration_s > TRACE_TIME_MAX_S)
        return error_set(err, EINVAL,
                         "submit time %g and run time %g: must be at most %.0f "
                         "s, the first not negative",
                         r.arrival_s, r.duration_s, TRACE_TIME_MAX_S);
    if (r.pairs > DEMAND_SIZE_MAX || r.pairs != floor(r.pairs))
        return error_set(err, EINVAL,
                         "field %d: is %g processors, must be a whole number "
                         "of at most %d",
                         SWF_REQUESTED + 1, r.pairs, DEMAND_SIZE_MAX);
    if (r.pairs < 1)
        r.cards = 0; /* nothing is known of its size */
    return trace_add(t, &r, err);
}

/* "; MaxProcs: 128" */
static void read_swf_header(const char *line, size_t size, struct trace *t)
{
    cleanup_free char *text = xstrndup(line, size);
    const char *name = text + strspn(text, "; \t");
    if (strncasecmp(name, "MaxProcs:", 9) != 0)
        return;
    long value = strtol(name + 9, NULL, 10);
    t->max_procs = value > 0 && value <= TRACE_PROCS_MAX ? (uint32_t)value : 0;
}

/* --- a file ------------------------------------------------------------- */

static enum trace_format guess_format(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < size && text[i] == '{' ? TRACE_JSONL : TRACE_SWF;
}

static int read_line(enum trace_format format, const char *line, size_t size,
                     struct trace *t, struct error *err)
{
    while (size && (line[size - 1] == '\r' || line[size - 1] == ' '))
        size--;
    if (size == 0)
        return 0;
    if (size > TRACE_LINE_MAX)
        return error_set(err, EINVAL, "has %zu bytes, at most %d are allowed",
                         size, TRACE_LINE_MAX);
    if (format == TRACE_SWF && line[0] == ';') {
        read_swf_header(line, size, t);
        return 0;
    }
    if (format == TRACE_JSONL)
        return read_json_line(line, size, t, err);
    if (memchr(line, '\0', size))
        return error_set(err, EINVAL, "has a NUL byte");
    return read_swf_line(line, size, t, err);
}

/* Merge sort, since the order of equal arrivals counts. */
static void sort_jobs(struct replay_job *jobs, struct replay_job *room,
                      size_t n)
{
    if (n < 2)
        return;
    size_t half = n / 2, a = 0, b = half, to = 0;
    sort_jobs(jobs, room, half);
    sort_jobs(jobs + half, room, n - half);
    if (jobs[half - 1].arrival_us <= jobs[half].arrival_us)
        return;
    memcpy(room, jobs, half * sizeof *jobs);
    while (a < half)
        jobs[to++] = b < n && jobs[b].arrival_us < room[a].arrival_us
                         ? jobs[b++]
                         : room[a++];
}

static void trace_sort(struct trace *t)
{
    cleanup_free struct replay_job *room = xcalloc(t->n + 1, sizeof *room);
    sort_jobs(t->jobs, room, t->n);
}

int trace_read(const char *name, const char *text, size_t size,
               enum trace_format format, struct trace *t, struct error *err)
{
    size_t line = 1;
    if (format == TRACE_AUTO)
        format = guess_format(text, size);
    for (size_t at = 0; at < size; line++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - text) - at : size - at;
        int rc = read_line(format, text + at, n, t, err);
        if (rc < 0) {
            trace_fini(t);
            return error_wrap(err, "%s:%zu", name, line);
        }
        at += n + 1;
    }
    if (t->n == 0) {
        trace_fini(t);
        return error_set(err, EINVAL, "%s: has no job that takes a card", name);
    }
    trace_sort(t);
    return 0;
}

/* --- what pairs ask ----------------------------------------------------- */

static const struct need_name {
    const char *name;
    uint32_t max;
} need_names[] = {{"cpu", TRACE_CPU_MAX},
                  {"memory", TRACE_MEMORY_MAX},
                  {"card-cores", TRACE_CORES_MAX},
                  {"card-memory", TRACE_MEMORY_MAX}};

static int read_need(const char *text, uint32_t values[ARRAY_LEN(need_names)],
                     struct error *err)
{
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ","), name = strcspn(at, "="), k = 0;
        char *end = (char *)at;
        for (; k < ARRAY_LEN(need_names); k++)
            if (strlen(need_names[k].name) == name &&
                !memcmp(need_names[k].name, at, name))
                break;
        unsigned long value = 0;
        if (name < size && at[name + 1] >= '0' && at[name + 1] <= '9')
            value = strtoul(at + name + 1, &end, 10);
        if (k == ARRAY_LEN(need_names) || end != at + size ||
            value > need_names[k].max)
            return error_set(
                err, EINVAL,
                "--need: has \"%.*s\", may have cpu=THOUSANDTHS (at most %d), "
                "memory=MIB, card-cores=N (%d), card-memory=MIB (%d)",
                (int)(size < 64 ? size : 64), at, TRACE_CPU_MAX,
                TRACE_CORES_MAX, TRACE_MEMORY_MAX);
        values[k] = (uint32_t)value;
        at += size;
        if (*at == '\0')
            return 0;
    }
}

int trace_need(const char *text, struct trace *t, struct error *err)
{
    uint32_t values[ARRAY_LEN(need_names)] = {0};
    int rc = read_need(text, values, err);
    for (size_t i = 0; i < t->n && rc == 0; i++) {
        struct replay_job *j = &t->jobs[i];
        if (!j->cpu_milli)
            j->cpu_milli = values[0];
        if (!j->memory_mib)
            j->memory_mib = values[1];
        if (j->card_cores || j->card_memory_mib)
            continue;
        j->card_cores = (uint16_t)values[2];
        j->card_memory_mib = values[3];
    }
    return rc;
}

bool trace_asks_hosts(const struct trace *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->jobs[i].cpu_milli || t->jobs[i].memory_mib)
            return true;
    return false;
}

void trace_limit(struct trace *t, int64_t limit_us)
{
    size_t n = t->n;
    while (n > 1 &&
           t->jobs[n - 1].arrival_us - t->jobs[0].arrival_us > limit_us)
        n--;
    t->n_late += t->n - n;
    t->n = n;
}

void trace_compress(struct trace *t, double factor)
{
    for (size_t i = 0; i < t->n; i++)
        t->jobs[i].arrival_us =
            (int64_t)llround((double)t->jobs[i].arrival_us / factor);
}
