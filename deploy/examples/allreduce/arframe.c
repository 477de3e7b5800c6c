#include "deploy/examples/allreduce/arframe.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/mem.h"

/* Where in the head each thing stands. */
enum {
    AT_KIND = 4,
    AT_VERSION = 5,
    AT_RANK = 8,
    AT_SIZE = 10,
    AT_STEP = 12,
    AT_BYTES = 16,
    VERSION = 1
};
static const char magic[4] = {'B', 'G', 'A', 'R'};

static const struct {
    const char *name;
    uint64_t max;
} kinds[] = {
    [AR_HELLO] = {"HELLO", AR_HELLO_MAX},
    [AR_JOIN] = {"JOIN", 0},
    [AR_READY] = {"READY", 0},
    [AR_DATA] = {"DATA", AR_DATA_MAX},
    [AR_ERROR] = {"ERROR", AR_ERROR_MAX},
};

static void put(unsigned char *at, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, size_t n)
{
    uint64_t value = 0;
    while (n--)
        value = value << 8 | at[n];
    return value;
}

void arframe_write(const struct ar_frame *f, unsigned char ret_head[AR_HEAD])
{
    memset(ret_head, 0, AR_HEAD);
    memcpy(ret_head, magic, sizeof magic);
    ret_head[AT_KIND] = (unsigned char)f->kind;
    ret_head[AT_VERSION] = VERSION;
    put(ret_head + AT_RANK, f->rank, 2);
    put(ret_head + AT_SIZE, f->size, 2);
    put(ret_head + AT_STEP, f->step, 4);
    put(ret_head + AT_BYTES, f->bytes, 8);
}

int arframe_read(const unsigned char head[AR_HEAD], struct ar_frame *ret_frame,
                 struct error *err)
{
    unsigned kind = head[AT_KIND];
    if (memcmp(head, magic, sizeof magic) != 0)
        return error_set(err, EPROTO, "speaks another protocol");
    if (head[AT_VERSION] != VERSION)
        return error_set(err, EPROTO, "speaks version %u, must be %d",
                         head[AT_VERSION], VERSION);
    if (kind < AR_HELLO || kind >= ARRAY_LEN(kinds))
        return error_set(err, EPROTO, "sent a frame of kind %u", kind);
    const struct ar_frame f = {
        (enum ar_kind)kind, (uint16_t)get(head + AT_RANK, 2),
        (uint16_t)get(head + AT_SIZE, 2), (uint32_t)get(head + AT_STEP, 4),
        get(head + AT_BYTES, 8)};
    if (f.size < 1 || f.size > AR_RANKS_MAX || f.rank >= f.size)
        return error_set(err, EPROTO,
                         "says it is rank %u of %u, must be below a size of 1 "
                         "to %d",
                         f.rank, f.size, AR_RANKS_MAX);
    if (f.bytes > kinds[kind].max)
        return error_set(err, EPROTO,
                         "announces a %s of %" PRIu64 " bytes, the most is "
                         "%" PRIu64,
                         kinds[kind].name, f.bytes, kinds[kind].max);
    *ret_frame = f;
    return 0;
}

int arframe_expect(const struct ar_frame *got, const struct ar_frame *wanted,
                   struct error *err)
{
    if (got->kind == wanted->kind && got->rank == wanted->rank &&
        got->size == wanted->size && got->step == wanted->step &&
        got->bytes == wanted->bytes)
        return 0;
    return error_set(err, EPROTO,
                     "sent a %s of rank %u of %u, step %" PRIu32 ", %" PRIu64
                     " bytes; must be a %s of rank %u of %u, step %" PRIu32
                     ", %" PRIu64 " bytes",
                     kinds[got->kind].name, got->rank, got->size, got->step,
                     got->bytes, kinds[wanted->kind].name, wanted->rank,
                     wanted->size, wanted->step, wanted->bytes);
}
