#include "advertiser/act/flash/flash_record.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/file.h"
#include "model/topo/topo.h"

#define PREFIX "flash-"

DEFINE_CLEANUP(dir, DIR *, closedir)

static char *path_of(const char *dir, const char *card)
{
    return xasprintf("%s/" PREFIX "%s", dir, card);
}

int flash_record_write(const char *dir, const char *card,
                       const struct flash_record *record, struct error *err)
{
    cleanup_free char *path = path_of(dir, card);
    cleanup_str struct str text = STR_INIT(FLASH_RECORD_MAX);
    jwrite_object(&text, NULL);
    jwrite_bool(&text, "drained", record->drained);
    jwrite_text(&text, "reason", record->reason);
    jwrite_text(&text, "message", record->message);
    jwrite_end_object(&text);
    str_add_c(&text, '\n');
    return file_replace(path, 0600, text.data, text.size, true, err);
}

int flash_record_remove(const char *dir, const char *card, struct error *err)
{
    cleanup_free char *path = path_of(dir, card);
    return file_remove(path, err);
}

static int read_record(const char *path, struct flash_record *ret_record,
                       struct error *err)
{
    cleanup_free char *text = NULL;
    cleanup_with(json) cJSON *json = NULL;
    struct reader r;
    size_t size;
    int e = file_read(path, FLASH_RECORD_MAX, &text, &size, err);
    if (e == 0)
        e = json_parse(text, size, &json, err);
    if (e < 0)
        return e;
    reader_init(&r, json, "", err);
    ret_record->drained = reader_bool(&r, "drained");
    const char *reason = reader_string(&r, "reason", FLASH_REASON_MAX);
    const char *message = reader_string(&r, "message",
                                        FLASH_RECORD_MAX); /* cut below */
    if (reader_finish_lenient(&r) < 0)
        return -EINVAL;
    (void)snprintf(ret_record->reason, sizeof ret_record->reason, "%s", reason);
    (void)snprintf(ret_record->message, sizeof ret_record->message, "%s",
                   message);
    return 0;
}

static void take(const char *dir, const char *card,
                 struct flash_record *ret_record)
{
    cleanup_free char *path = path_of(dir, card);
    struct error err = {0};
    if (read_record(path, ret_record, &err) == 0 && ret_record->reason[0])
        return;
    ret_record->drained = false;
    (void)snprintf(ret_record->reason, sizeof ret_record->reason,
                   "FlashInterrupted");
    (void)snprintf(ret_record->message, sizeof ret_record->message,
                   "the card was being flashed, and what became of it cannot "
                   "be read: %.300s",
                   err.text);
}

/* Of a card's id; what is half written, too, is none. */
static bool is_card(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= TOPO_ID_MAX && !strchr(name, '.');
}

int flash_record_each(const char *dir,
                      void (*visit)(void *ctx, const char *card,
                                    const struct flash_record *record),
                      void *ctx, struct error *err)
{
    const size_t prefix = strlen(PREFIX);
    cleanup_with(dir) DIR *d = opendir(dir);
    if (!d)
        return error_errno(err, errno, "%s", dir);
    for (struct dirent *x; (x = readdir(d));) {
        struct flash_record record = {0};
        if (strncmp(x->d_name, PREFIX, prefix) != 0 ||
            !is_card(x->d_name + prefix))
            continue;
        take(dir, x->d_name + prefix, &record);
        visit(ctx, x->d_name + prefix, &record);
    }
    return 0;
}
