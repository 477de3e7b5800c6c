#include "lib/db/dbsalvage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/db/sqldb.h"

struct salvage {
    int fds[2];
    dbpages_row_f *visit;
    void *ctx;
};

static bool read_file(void *ctx, enum dbpages_file file, uint64_t at, void *buf,
                      size_t size)
{
    const struct salvage *s = ctx;
    return pread(s->fds[file], buf, size, (off_t)at) == (ssize_t)size;
}

static bool is_whole(const struct dbpages_row *row)
{
    const struct dbpages_value *last = &row->values[row->n - 1];
    int64_t sum = 0;
    for (size_t i = 0; i + 1 < row->n; i++) {
        const struct dbpages_value *v = &row->values[i];
        sum = v->type == DBPAGES_INT ? sum_u64(sum, (uint64_t)v->number)
                                     : sum_add(sum, v->data, v->size);
    }
    return row->n > 1 && last->type == DBPAGES_INT && last->number == sum;
}

static int visit_whole(void *ctx, const struct dbpages_row *row)
{
    const struct salvage *s = ctx;
    return is_whole(row) ? s->visit(s->ctx, row) : 0;
}

bool dbsalvage_is(const struct dbpages_row *row, const char *columns)
{
    if (row->n != strlen(columns))
        return false;
    for (size_t i = 0; i < row->n; i++) {
        const char kind = "?itb"[row->values[i].type];
        if (kind != columns[i])
            return false;
    }
    return true;
}

int dbsalvage_each(const char *dir, const char *name, dbpages_row_f *visit,
                   void *ctx, struct dbpages_found *ret_found)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cleanup_free char *log = xasprintf("%s-wal", path);
    cleanup_fd int main_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    cleanup_fd int log_fd = open(log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct salvage s = {.fds = {main_fd, log_fd}, .visit = visit, .ctx = ctx};
    struct dbpages_source source = {.read = read_file, .ctx = &s};
    for (int i = 0; i < 2; i++) {
        struct stat st; /* a file that is not there has nothing */
        if (s.fds[i] >= 0 && fstat(s.fds[i], &st) == 0)
            source.size[i] = (uint64_t)st.st_size;
    }
    return dbpages_each(&source, visit_whole, &s, ret_found);
}
