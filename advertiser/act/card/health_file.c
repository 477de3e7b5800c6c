#include "advertiser/act/card/health_file.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/str.h"
#include "lib/io/file.h"

/* --- reading -------------------------------------------------------------- */

static int read_card(const cJSON *json, int index, struct health_file *f,
                     struct error *err)
{
    struct reader r;
    char path[32];
    (void)snprintf(path, sizeof path, "cards[%d]", index);
    reader_init(&r, json, path, err);
    const char *name = reader_string(&r, "name", ACT_NAME_MAX);
    const char *health = reader_string(&r, "health", 16);
    const char *reason = reader_opt_string(&r, "reason", ACT_MESSAGE_MAX - 1);
    bool lost = health && strcmp(health, "lost") == 0;
    if (health && !lost && strcmp(health, "ready") != 0)
        reader_fail(&r, "health", "is \"%s\", must be ready or lost", health);
    int e = reader_finish_lenient(&r);
    if (e == 0)
        (void)health_file_set(f, name, lost, reason ? reason : "");
    return e;
}

static int read_all(const cJSON *json, struct health_file *f, struct error *err)
{
    struct reader r;
    const cJSON *card;
    int i = 0, e = 0;
    reader_init(&r, json, "", err);
    const cJSON *list = reader_array(&r, "cards", HEALTH_FILE_CARDS_MAX);
    cJSON_ArrayForEach(card, list)
    {
        if (e == 0)
            e = read_card(card, i++, f, err);
    }
    return e < 0 ? e : reader_finish_lenient(&r);
}

int health_file_load(const char *path, struct health_file *ret_file,
                     struct error *err)
{
    cleanup_free char *text = NULL;
    cleanup_free struct health_file *f = xcalloc(1, sizeof *f);
    cleanup_with(json) cJSON *json = NULL;
    size_t size;
    int e = file_read(path, HEALTH_FILE_BYTES_MAX, &text, &size, err);
    if (e < 0)
        return e;
    e = json_parse(text, size, &json, err);
    if (e == 0)
        e = read_all(json, f, err);
    if (e < 0)
        return error_wrap(err, "%s", path);
    *ret_file = *f;
    return 0;
}

/* --- writing -------------------------------------------------------------- */

static void write_text(const struct health_file *f, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_array(out, "cards");
    for (size_t i = 0; i < f->n; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "name", f->cards[i].name);
        jwrite_text(out, "health", f->cards[i].lost ? "lost" : "ready");
        jwrite_text(out, "reason", f->cards[i].reason);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    str_add_c(out, '\n');
}

int health_file_store(const char *path, const struct health_file *f,
                      struct error *err)
{
    cleanup_str struct str text = STR_INIT(HEALTH_FILE_BYTES_MAX);
    write_text(f, &text);
    return file_replace(path, 0644, text.data, text.size, false, err);
}

/* --- what it says --------------------------------------------------------- */

bool health_file_set(struct health_file *f, const char *name, bool lost,
                     const char *reason)
{
    size_t i = 0;
    while (i < f->n && strcmp(f->cards[i].name, name) != 0)
        i++;
    struct health_file_card *card = &f->cards[i];
    if (i == HEALTH_FILE_CARDS_MAX || (i < f->n && card->lost == lost))
        return false;
    f->n += i == f->n;
    card->lost = lost;
    (void)snprintf(card->name, sizeof card->name, "%s", name);
    (void)snprintf(card->reason, sizeof card->reason, "%s", reason);
    return true;
}
