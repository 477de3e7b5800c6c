#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/replay/cost.h"
#include "lib/base/mem.h"

enum { FIELDS_MAX = 512, UCC_TEAM_MAX = 4096 };
#define BYTES_MAX 1e15

static int add_call(struct profile *p, enum collective what, double bytes,
                    double count, struct error *err)
{
    if (!(bytes >= 0) || bytes > BYTES_MAX || !(count >= 1) || count > 1e9)
        return error_set(err, EINVAL,
                         "%g bytes, %g times: must be 0 to %g, 1 to 1e9", bytes,
                         count, BYTES_MAX);
    for (size_t i = 0; i < p->n; i++) {
        if (p->calls[i].what != what || p->calls[i].bytes < bytes ||
            p->calls[i].bytes > bytes)
            continue;
        p->calls[i].count += (uint64_t)count;
        return 0;
    }
    if (p->n == PROFILE_CALLS_MAX)
        return error_set(err, E2BIG, "has more than %d different calls",
                         PROFILE_CALLS_MAX);
    p->calls[p->n++] = (struct profile_call){what, bytes, (uint64_t)count};
    return 0;
}

/* Cut a line at any of `at`, in place. */
static size_t cut(char *line, const char *at, char *ret_fields[FIELDS_MAX])
{
    size_t n = 0;
    for (char *p = line; n < FIELDS_MAX;) {
        ret_fields[n++] = p;
        p += strcspn(p, at);
        if (*p == '\0')
            break;
        *p++ = '\0';
        if (at[0] == ' ')
            p += strspn(p, at);
    }
    return n;
}

static int read_double(const char *text, double *ret_value, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    end += strspn(end, " \t\r");
    if (end == text || *end || !isfinite(value))
        return error_set(err, EINVAL, "\"%.32s\" is no number", text);
    *ret_value = value;
    return 0;
}

/* --- AICB: one call a line, columns named in the second line ------------ */

static const struct {
    const char *word;
    enum collective what;
} aicb_words[] = {
    {"CommType.barrier", COLL_BARRIER},
    {"CommType.broadcast", COLL_BCAST},
    {"CommType.all_reduce", COLL_ALLREDUCE},
    {"CommType.all_gather", COLL_ALLGATHER},
    {"CommType.reduce_scatter", COLL_REDUCE_SCATTER},
    {"CommType.all_to_all", COLL_ALLTOALL},
    {"CommType.alltoall", COLL_ALLTOALL},
};

static int read_aicb(char *line, struct profile *p, struct error *err)
{
    char *field[FIELDS_MAX];
    size_t n = cut(line, ",", field);
    double bytes = 0, count = 1, ranks = 1;
    if (field[0][0] == '[' || strcmp(field[0], "comm_type") == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(aicb_words); i++) {
        if (strcmp(field[0], aicb_words[i].word) != 0)
            continue;
        enum collective what = aicb_words[i].what;
        if (n < 4)
            return error_set(err, EINVAL, "has %zu columns, must have 4", n);
        if ((what != COLL_BARRIER && read_double(field[3], &bytes, err) < 0) ||
            (n >= 12 && read_double(field[n - 1], &count, err) < 0))
            return -EINVAL;
        if (what == COLL_ALLTOALL) /* of the whole send buffer */
            if (read_double(field[2], &ranks, err) < 0 || ranks < 1)
                return error_set(err, EINVAL, "comm_group_size: is \"%.32s\"",
                                 field[2]);
        return add_call(p, what, bytes / ranks, count, err);
    }
    p->n_skipped++;
    return 0;
}

/* --- SimGrid's time-independent trace: RANK ACTION ARGUMENT… ------------ */

enum { TI_UNIT = 8 }; /* bytes of its default datatype, MPI_DOUBLE */

/* Bytes of a datatype by its number there. */
static double ti_unit(const char *number)
{
    static const double bytes[] = {8, 4, 1, 2, 8, 4, 1};
    size_t i = strlen(number) == 1 ? (size_t)(number[0] - '0') : SIZE_MAX;
    return i < ARRAY_LEN(bytes) ? bytes[i] : TI_UNIT;
}

/* The mean of the first counts of alltoallv: SEND-SIZE COUNT… */
static int read_counts(char **field, size_t n, double *ret_mean,
                       struct error *err)
{
    double total, sum = 0, value;
    size_t ranks = 0;
    int rc = n > 3 ? read_double(field[2], &total, err) : -EINVAL;
    if (rc < 0)
        return error_set(err, EINVAL, "alltoallv: must have counts");
    for (size_t i = 3; i < n && sum < total; i++, ranks++) {
        if ((rc = read_double(field[i], &value, err)) < 0)
            return rc;
        sum += value;
    }
    *ret_mean = ranks ? sum / (double)ranks : 0;
    return 0;
}

static int read_ti(char *line, struct profile *p, struct error *err)
{
    char *field[FIELDS_MAX];
    size_t n = cut(line, " \t", field);
    double size = 0;
    while (n && *field[n - 1] == '\0')
        n--;
    if (n < 2)
        return error_set(err, EINVAL, "has no action");
    const char *action = field[1];
    if (strcmp(action, "barrier") == 0)
        return add_call(p, COLL_BARRIER, 0, 1, err);
    if (strcmp(action, "alltoallv") == 0) {
        if (read_counts(field, n, &size, err) < 0)
            return -EINVAL;
        return add_call(p, COLL_ALLTOALLV, size * TI_UNIT, 1, err);
    }
    enum collective what = strcmp(action, "bcast") == 0       ? COLL_BCAST
                           : strcmp(action, "allreduce") == 0 ? COLL_ALLREDUCE
                           : strcmp(action, "allgather") == 0 ? COLL_ALLGATHER
                           : strcmp(action, "alltoall") == 0  ? COLL_ALLTOALL
                                                              : COLL_COUNT;
    if (what == COLL_COUNT) {
        p->n_skipped += strcmp(action, "compute") != 0;
        return 0;
    }
    if (n < 3)
        return error_set(err, EINVAL, "%s: must have a size", action);
    if (read_double(field[2], &size, err) < 0)
        return -EINVAL;
    double unit = n > 4 ? ti_unit(field[4]) : TI_UNIT;
    return add_call(p, what, size * unit, 1, err);
}

/* --- UCC's matrices: counts = { rows of numbers } ----------------------- */

/* What is known of the section that is being read. */
struct ucc {
    bool in_counts, alltoallv;
    double unit, sum, n;
};

static double ucc_unit(const char *type)
{
    const char *digits = type + strcspn(type, "0123456789");
    double bits = strtod(digits, NULL);
    return bits > 0 ? bits / 8 : 4;
}

static int ucc_row(char *line, struct ucc *u, struct error *err)
{
    char *field[FIELDS_MAX];
    size_t n = cut(line, ",", field);
    for (size_t i = 0; i < n; i++) {
        double value;
        if (field[i][strspn(field[i], " \t\r")] == '\0')
            continue;
        if (read_double(field[i], &value, err) < 0)
            return -EINVAL;
        u->sum += value;
        u->n++;
    }
    return 0;
}

static int read_ucc(char *line, struct ucc *u, struct profile *p,
                    struct error *err)
{
    line += strspn(line, " \t");
    if (u->in_counts && *line == '}') {
        u->in_counts = false;
        if (!u->alltoallv || u->n < 1) {
            p->n_skipped++;
            return 0;
        }
        return add_call(p, COLL_ALLTOALLV, u->sum / u->n * u->unit, 1, err);
    }
    if (u->in_counts)
        return ucc_row(line, u, err);
    const char *equals = strchr(line, '=');
    const char *value = equals ? equals + 1 + strspn(equals + 1, " \t") : "";
    if (strncmp(line, "type", 4) == 0)
        u->alltoallv = strncmp(value, "ALLTOALLV", 9) == 0;
    else if (strncmp(line, "datatype", 8) == 0)
        u->unit = ucc_unit(value);
    else if (strncmp(line, "counts", 6) == 0) {
        u->in_counts = true;
        u->sum = u->n = 0;
    }
    return 0;
}

/* --- a file ------------------------------------------------------------- */

enum format { AICB, TI, UCC };

static enum format guess(const char *text)
{
    const char *first = text + strspn(text, " \t\r\n");
    if (strstr(text, "comm_type") || strncmp(first, "CommType.", 9) == 0)
        return AICB;
    return *first == '[' ? UCC : TI;
}

static int read_line(enum format format, char *line, struct ucc *u,
                     struct profile *p, struct error *err)
{
    size_t size = strlen(line);
    while (size && strchr(" \t\r", line[size - 1]))
        line[--size] = '\0';
    if (size == 0 || line[0] == '#')
        return 0;
    if (format == AICB)
        return read_aicb(line, p, err);
    return format == TI ? read_ti(line, p, err) : read_ucc(line, u, p, err);
}

int profile_read(const char *name, const char *text, size_t size,
                 struct profile *ret_profile, struct error *err)
{
    cleanup_free char *copy = xstrndup(text, size);
    enum format format = guess(copy);
    struct ucc u = {.unit = 4};
    size_t number = 1;
    ret_profile->n = 0;
    ret_profile->n_skipped = 0;
    for (char *line = copy; line; number++) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (read_line(format, line, &u, ret_profile, err) < 0)
            return error_wrap(err, "%s:%zu", name, number);
        line = end ? end + 1 : NULL;
    }
    if (ret_profile->n == 0)
        return error_set(err, EINVAL, "%s: has no collective", name);
    return 0;
}
