#include "advertiser/dra/dra_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/dra/cdi.h"
#include "lib/io/failpoint.h"
#include "lib/io/file.h"
#include "lib/io/log.h"

#define CDI_PREFIX DRA_DRIVER "-claim_"
#define SUFFIX ".json"
#define BESIDE ".new"

struct dra_files {
    char *dir, *cdi_dir;
    struct dra_record **list; /* by UID */
    size_t n, cap;
};

/* --- paths ---------------------------------------------------------------- */

static char *record_path(const struct dra_files *f, const char *uid)
{
    return xasprintf("%s/%s" SUFFIX, f->dir, uid);
}

static char *cdi_path(const struct dra_files *f, const char *uid)
{
    return xasprintf("%s/" CDI_PREFIX "%s" SUFFIX, f->cdi_dir, uid);
}

int dra_make_dirs(const char *path, unsigned mode, struct error *err)
{
    cleanup_free char *copy = xstrdup(path);
    for (char *p = copy + 1;; p++) {
        char c = *p;
        if (c != '/' && c)
            continue;
        *p = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return error_errno(err, errno, "%s: cannot be made", copy);
        *p = c;
        if (!c)
            return 0;
    }
}

/* --- files ---------------------------------------------------------------- */

static int sync_dir(const char *dir, struct error *err)
{
    cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0
               ? error_errno(err, errno, "%s: cannot be written", dir)
               : 0;
}

static int put_file(const char *path, mode_t mode, const struct str *text,
                    bool durable, struct error *err)
{
    cleanup_free char *beside = xasprintf("%s" BESIDE, path);
    int e = file_write(beside, mode, text->data, text->size, durable, err);
    (void)failpoint("claim-half-file");
    if (e == 0 && rename(beside, path) < 0)
        e = error_errno(err, errno, "%s: cannot be renamed", beside);
    if (e < 0)
        (void)unlink(beside); /* the next start does it else */
    return e;
}

static int remove_file(const char *path, struct error *err)
{
    return unlink(path) < 0 && errno != ENOENT
               ? error_errno(err, errno, "%s: cannot be removed", path)
               : 0;
}

/* --- the table ------------------------------------------------------------ */

/* The first that is not below. */
static size_t find_at(const struct dra_files *f, const char *uid)
{
    size_t low = 0, high = f->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(f->list[middle]->uid, uid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has(const struct dra_files *f, size_t at, const char *uid)
{
    return at < f->n && strcmp(f->list[at]->uid, uid) == 0;
}

const struct dra_record *dra_files_find(const struct dra_files *f,
                                        const char *uid)
{
    size_t at = find_at(f, uid);
    return has(f, at, uid) ? f->list[at] : NULL;
}

const struct dra_record *dra_files_next(const struct dra_files *f,
                                        const char *uid)
{
    size_t at = find_at(f, uid);
    at += has(f, at, uid);
    return at < f->n ? f->list[at] : NULL;
}

size_t dra_files_count(const struct dra_files *f)
{
    return f->n;
}

static void insert(struct dra_files *f, struct dra_record *record)
{
    size_t at = find_at(f, record->uid);
    if (has(f, at, record->uid)) {
        dra_record_destroy(f->list[at]);
    } else {
        f->list = xgrow(f->list, f->n, &f->cap, sizeof *f->list);
        memmove(f->list + at + 1, f->list + at,
                (f->n - at) * sizeof(struct dra_record *));
        f->n++;
    }
    f->list[at] = record;
}

int dra_files_put(struct dra_files *f, struct dra_record *record,
                  struct error *err)
{
    cleanup_with(dra_record) struct dra_record *r = record;
    cleanup_str struct str text = STR_INIT(DRA_RECORD_MAX);
    cleanup_free char *path = record_path(f, r->uid);
    if (f->n >= DRA_RECORDS_MAX && !dra_files_find(f, r->uid))
        return error_set(err, ENOSPC,
                         "%s: %zu claims are prepared, at most %d allowed",
                         f->dir, f->n, DRA_RECORDS_MAX);
    dra_record_write(r, &text);
    if (text.overflow)
        return error_set(err, E2BIG, "%s: takes more than %d bytes", path,
                         DRA_RECORD_MAX);
    (void)failpoint("claim-before-record");
    int e = put_file(path, 0600, &text, true, err);
    if (e == 0)
        e = sync_dir(f->dir, err);
    (void)failpoint("claim-after-record");
    if (e == 0)
        insert(f, steal(&r));
    return e;
}

static bool is_same(const char *path, const struct str *text)
{
    cleanup_free char *there = NULL;
    size_t size = 0;
    struct error err = {0};
    return file_read(path, CDI_MAX, &there, &size, &err) == 0 &&
           size == text->size && memcmp(there, str_text(text), size) == 0;
}

int dra_files_put_cdi(struct dra_files *f, const char *uid,
                      const struct str *text, bool *ret_written,
                      struct error *err)
{
    cleanup_free char *path = cdi_path(f, uid);
    bool same = is_same(path, text);
    int e = same ? 0 : dra_make_dirs(f->cdi_dir, 0755, err);
    if (e == 0 && !same)
        e = put_file(path, 0644, text, false, err);
    (void)failpoint("claim-after-file");
    if (e == 0 && ret_written)
        *ret_written = !same;
    return e;
}

int dra_files_remove(struct dra_files *f, const char *uid, struct error *err)
{
    cleanup_free char *cdi = cdi_path(f, uid), *path = record_path(f, uid);
    size_t at = find_at(f, uid);
    (void)failpoint("claim-before-unfile");
    int e = remove_file(cdi, err);
    (void)failpoint("claim-after-unfile");
    if (e == 0)
        e = remove_file(path, err);
    if (e == 0)
        e = sync_dir(f->dir, err);
    (void)failpoint("claim-after-unrecord");
    if (e < 0 || !has(f, at, uid))
        return e;
    dra_record_destroy(f->list[at]);
    f->n--;
    memmove(f->list + at, f->list + at + 1,
            (f->n - at) * sizeof(struct dra_record *));
    return 0;
}

/* --- the start ------------------------------------------------------------ */

/* "UID.json" of that prefix: its UID. */
static bool uid_of(const char *name, const char *prefix,
                   char ret_uid[DRA_UID_MAX + 1])
{
    size_t size = strlen(name), begin = strlen(prefix), end = sizeof SUFFIX - 1;
    if (size <= begin + end || size - begin - end > DRA_UID_MAX ||
        strncmp(name, prefix, begin) != 0 ||
        strcmp(name + size - end, SUFFIX) != 0)
        return false;
    memcpy(ret_uid, name + begin, size - begin - end);
    ret_uid[size - begin - end] = '\0';
    return dra_uid_is_good(ret_uid);
}

/* Ours, and not renamed to its place. */
static bool is_half(const char *name, const char *prefix)
{
    size_t size = strlen(name), end = sizeof BESIDE - 1;
    return size > end && strncmp(name, prefix, strlen(prefix)) == 0 &&
           strcmp(name + size - end, BESIDE) == 0;
}

static int load(const char *path, const char *uid,
                struct dra_record **ret_record, struct error *err)
{
    cleanup_free char *text = NULL;
    cleanup_with(dra_record) struct dra_record *r = NULL;
    size_t size = 0;
    int e = file_read(path, DRA_RECORD_MAX, &text, &size, err);
    if (e == 0)
        e = dra_record_parse(text, size, &r, err);
    if (e == 0 && strcmp(r->uid, uid) != 0)
        e = error_set(err, EINVAL, "uid: is \"%s\"", r->uid);
    if (e == 0)
        *ret_record = steal(&r);
    return e;
}

/* One that is no record is of a disk that lost it: what it was of is unknown,
 * and the kubelet says the claim again when it needs it.  One that cannot be
 * read now may be read later. */
static int take_record(struct dra_files *f, const char *name, struct error *err)
{
    char uid[DRA_UID_MAX + 1];
    struct dra_record *r = NULL;
    struct error why = {0};
    cleanup_free char *path = xasprintf("%s/%s", f->dir, name);
    if (is_half(name, ""))
        return remove_file(path, err);
    if (!uid_of(name, "", uid))
        return 0;
    int e = load(path, uid, &r, &why);
    if (e == 0) {
        insert(f, r);
        return 0;
    }
    if (e != -EINVAL && e != -EFBIG) {
        *err = why;
        return e;
    }
    log_event(LOG_ERROR, "claim-record-damaged", "uid", uid, "error", why.text,
              NULL);
    return remove_file(path, err);
}

static int take_cdi(struct dra_files *f, const char *name, struct error *err)
{
    char uid[DRA_UID_MAX + 1];
    cleanup_free char *path = xasprintf("%s/%s", f->cdi_dir, name);
    bool left = is_half(name, CDI_PREFIX) ||
                (uid_of(name, CDI_PREFIX, uid) && !dra_files_find(f, uid));
    return left ? remove_file(path, err) : 0;
}

static int each_name(struct dra_files *f, const char *dir,
                     int (*take)(struct dra_files *, const char *,
                                 struct error *),
                     struct error *err)
{
    struct dirent **list = NULL;
    int e = 0, n = scandir(dir, &list, NULL, alphasort);
    if (n < 0)
        return error_errno(err, errno, "%s: cannot be read", dir);
    for (int i = 0; i < n; i++) {
        if (e == 0)
            e = take(f, list[i]->d_name, err);
        free(list[i]);
    }
    free(list);
    return e;
}

int dra_files_open(const char *dir, const char *cdi_dir,
                   struct dra_files **ret_files, struct error *err)
{
    cleanup_with(dra_files) struct dra_files *f = xcalloc(1, sizeof *f);
    f->dir = xstrdup(dir);
    f->cdi_dir = xstrdup(cdi_dir);
    int e = dra_make_dirs(dir, 0700, err);
    if (e == 0)
        e = dra_make_dirs(cdi_dir, 0755, err);
    if (e == 0)
        e = each_name(f, dir, take_record, err);
    if (e == 0)
        e = each_name(f, cdi_dir, take_cdi, err);
    if (e == 0)
        *ret_files = steal(&f);
    return e;
}

void dra_files_close(struct dra_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        dra_record_destroy(f->list[i]);
    free(f->list);
    free(f->dir);
    free(f->cdi_dir);
    free(f);
}
