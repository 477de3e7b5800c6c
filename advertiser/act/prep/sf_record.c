#include "advertiser/act/prep/sf_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/file.h"

enum { RECORD_MAX = 256 << 10 }; /* bytes */

static int read_entry(const cJSON *json, struct sf_entry *ret,
                      struct error *err)
{
    struct reader in;
    reader_init(&in, json, "sfs[]", err);
    const char *uid = reader_string(&in, "uid", SF_UID_MAX);
    ret->sfnum = (uint32_t)reader_int(&in, "sfnum", SF_FIRST, SF_LAST);
    if (uid)
        (void)snprintf(ret->uid, sizeof ret->uid, "%s", uid);
    return reader_finish_lenient(&in);
}

void sf_record_add(struct sf_record *r, const struct sf_entry *e)
{
    r->list = xgrow(r->list, r->n, &r->cap, sizeof *r->list);
    r->list[r->n++] = *e;
}

static int read_record(struct sf_record *r, struct error *err)
{
    cleanup_free char *text = NULL;
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *list, *x;
    struct reader in;
    size_t size;
    if (access(r->path, F_OK) < 0)
        return 0; /* none were made */
    int e = file_read(r->path, RECORD_MAX, &text, &size, err);
    if (e == 0)
        e = json_parse(text, size, &json, err);
    if (e < 0)
        return e;
    reader_init(&in, json, "", err);
    list = reader_array(&in, "sfs", SF_ENTRIES_MAX);
    cJSON_ArrayForEach(x, list)
    {
        struct sf_entry entry = {.uid = ""};
        if (e == 0)
            e = read_entry(x, &entry, err);
        if (e == 0)
            sf_record_add(r, &entry);
    }
    return e < 0 ? e : reader_finish_lenient(&in);
}

int sf_record_load(struct sf_record *r, struct error *err)
{
    int e = read_record(r, err);
    return e < 0 ? error_wrap(err, "%s", r->path) : 0;
}

int sf_record_store(const struct sf_record *r, struct error *err)
{
    cleanup_str struct str text = STR_INIT(RECORD_MAX);
    if (r->n == 0)
        return file_remove(r->path, err);
    jwrite_object(&text, NULL);
    jwrite_array(&text, "sfs");
    for (size_t i = 0; i < r->n; i++) {
        jwrite_object(&text, NULL);
        jwrite_text(&text, "uid", r->list[i].uid);
        jwrite_uint(&text, "sfnum", r->list[i].sfnum);
        jwrite_end_object(&text);
    }
    jwrite_end_array(&text);
    jwrite_end_object(&text);
    return file_replace(r->path, 0600, text.data, text.size, true, err);
}

void sf_record_fini(struct sf_record *r)
{
    free(r->path);
    free(r->list);
    *r = (struct sf_record){.path = NULL};
}
