/* The files of a damaged database, whatever is in them: the walk ends, what it
 * shows lies within what was given, and it shows the same again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/db/dbpages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *bytes[2];
    uint64_t size[2];
};

struct pending_demands {
    uint64_t rows, sum;
};

static bool read_input(void *ctx, enum dbpages_file file, uint64_t at,
                       void *buf, size_t size)
{
    const struct input *in = ctx;
    if (at > in->size[file] || size > in->size[file] - at)
        return false;
    memcpy(buf, in->bytes[file] + at, size);
    return true;
}

static int see(void *ctx, const struct dbpages_row *row)
{
    struct pending_demands *s = ctx;
    assert(row->n > 0 && row->n <= DBPAGES_COLUMNS_MAX);
    for (size_t i = 0; i < row->n; i++) {
        const struct dbpages_value *v = &row->values[i];
        bool bytes = v->type == DBPAGES_TEXT || v->type == DBPAGES_BLOB;
        assert(bytes || (!v->data && !v->size));
        assert(v->size <= DBPAGES_ROW_MAX);
        uint64_t h = bytes ? hash_bytes(v->data, v->size) : (uint64_t)v->number;
        s->sum = hash_mix(s->sum, h);
    }
    s->rows++;
    return 0;
}

/* Its first two bytes: how many KiB are the database, the rest is the log. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pending_demands first = {0}, again = {0};
    struct dbpages_found found, same;
    if (size < 2)
        return 0;
    size_t left = size - 2, split = ((size_t)data[0] << 8 | data[1]) * 1024;
    if (split > left)
        split = left;
    struct input in = {{data + 2, data + 2 + split}, {split, left - split}};
    struct dbpages_source source = {
        .read = read_input, .ctx = &in, .size = {in.size[0], in.size[1]}};
    assert(dbpages_each(&source, see, &first, &found) == 0);
    assert(found.broken <= found.frames && found.rows == first.rows);
    assert(dbpages_each(&source, see, &again, &same) == 0);
    assert(memcmp(&found, &same, sizeof found) == 0);
    assert(first.sum == again.sum && first.rows == again.rows);
    source.size[DBPAGES_LOG] += 100000; /* which cannot be read */
    assert(dbpages_each(&source, see, &again, &same) == 0);
    assert(same.rows >= found.rows);
    return 0;
}
