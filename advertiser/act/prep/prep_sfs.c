/* Scalable functions of a card, by the command devlink (iproute2; see
 * Documentation/networking/devlink/devlink-port.rst in Linux): a port of
 * flavour pcisf is added and made active, and an auxiliary device appears below
 * the PCI function, with its number in the file `sfnum`.  Which number is whose
 * is written down (sf_record.h) before that. */
#include "advertiser/act/prep/prep_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "advertiser/act/prep/devlink.h"
#include "advertiser/act/prep/sf_record.h"
#include "advertiser/act/prep/tool.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum {
    ARGS_MAX = 16,
    NAME_MAX_LEN = 255,
};

DEFINE_CLEANUP(dir, DIR *, closedir)

struct sfs {
    const struct prep_config *config;
    const struct prep_request *request;
    struct sf_record record;
    int lock;
    struct devlink_sfs there;
    uint32_t pfnum;
};

static bool is_mine(const struct sfs *s, const struct sf_entry *e)
{
    return strcmp(e->uid, s->request->uid) == 0;
}

static void find_paths(struct sfs *s)
{
    const struct prep_request *r = s->request;
    s->record.path = xasprintf("%s/sf-%s", s->config->dir, r->card);
    s->pfnum = (uint32_t)strtoul(strrchr(r->pci, '.') + 1, NULL, 16);
}

/* One at a time for a card; short: each command has its limit. */
static int begin(struct sfs *s, struct error *err)
{
    const struct prep_request *r = s->request;
    find_paths(s);
    cleanup_free char *lock = xasprintf("%s/sf-%s.lock", s->config->dir,
                                        r->card);
    s->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return error_errno(err, errno, "%s", lock);
    while (flock(s->lock, LOCK_EX) < 0)
        if (errno != EINTR)
            return error_errno(err, errno, "%s", lock);
    return sf_record_load(&s->record, err);
}

static void end(struct sfs *s)
{
    sf_record_fini(&s->record);
    free(s->there.list);
    if (s->lock >= 0)
        (void)close(s->lock);
}

/* --- devlink -------------------------------------------------------------- */

static int64_t limit_ms(const struct sfs *s)
{
    return s->config->sf_ms > 0 ? s->config->sf_ms : PREP_SF_MS;
}

/* `args` are words with a space between, none of which has one within. */
static int devlink(const struct sfs *s, char *args, struct str *ret_out,
                   struct error *err)
{
    const char *argv[ARGS_MAX + 1] = {
        s->config->devlink ? s->config->devlink : "devlink", "-j"};
    char *rest = NULL;
    size_t n = 2;
    for (char *word = strtok_r(args, " ", &rest); word && n < ARGS_MAX;
         word = strtok_r(NULL, " ", &rest))
        argv[n++] = word;
    return tool_run(argv, limit_ms(s), ret_out, err);
}

static int look(struct sfs *s, struct error *err)
{
    cleanup_str struct str out = STR_INIT(TOOL_OUT_MAX);
    char args[] = "port show";
    free(steal(&s->there.list));
    s->there.n = 0;
    int e = devlink(s, args, &out, err);
    return e < 0 ? e
                 : devlink_read_sfs(str_text(&out), out.size, s->request->pci,
                                    &s->there, err);
}

static const struct devlink_sf *find_port(const struct devlink_sfs *there,
                                          uint32_t pfnum, uint32_t sfnum)
{
    for (size_t i = 0; i < there->n; i++)
        if (there->list[i].sfnum == sfnum && there->list[i].pfnum == pfnum)
            return &there->list[i];
    return NULL;
}

static int remove_port(const struct sfs *s, uint32_t sfnum, struct error *err)
{
    const struct devlink_sf *port = find_port(&s->there, s->pfnum, sfnum);
    cleanup_str struct str out = STR_INIT(TOOL_OUT_MAX);
    if (!port)
        return 0;
    cleanup_free char *args = xasprintf("port del %s", port->handle);
    return devlink(s, args, &out, err);
}

static int add_port(struct sfs *s, uint32_t sfnum, struct devlink_sf *ret_port,
                    struct error *err)
{
    cleanup_str struct str out = STR_INIT(TOOL_OUT_MAX);
    cleanup_free char *args =
        xasprintf("port add pci/%s flavour pcisf pfnum %u sfnum %u",
                  s->request->pci, s->pfnum, sfnum);
    int e = devlink(s, args, &out, err);
    if (e == 0)
        e = look(s, err);
    if (e < 0)
        return e;
    const struct devlink_sf *port = find_port(&s->there, s->pfnum, sfnum);
    if (!port)
        return error_set(
            err, EIO, "devlink added number %u, and does not show it", sfnum);
    *ret_port = *port;
    return 0;
}

/* Its own address: of the pod and the number, local and of one host. */
static int activate(const struct sfs *s, const struct devlink_sf *port,
                    struct error *err)
{
    cleanup_free char *key = xasprintf("%s/%u", s->request->uid, port->sfnum);
    uint64_t h = hash_bytes(key, strlen(key));
    cleanup_str struct str out = STR_INIT(TOOL_OUT_MAX);
    cleanup_free char *args = xasprintf(
        "port function set %s hw_addr 02:%02x:%02x:%02x:%02x:%02x state active",
        port->handle, (unsigned)(h >> 32 & 0xff), (unsigned)(h >> 24 & 0xff),
        (unsigned)(h >> 16 & 0xff), (unsigned)(h >> 8 & 0xff),
        (unsigned)(h & 0xff));
    return devlink(s, args, &out, err);
}

/* --- devices -------------------------------------------------------------- */

static bool has_number(const char *path, uint32_t sfnum)
{
    char text[16] = "";
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    return n > 0 && strtoul(text, NULL, 10) == sfnum;
}

/* "mlx5_core.sf.4" */
static bool find_device(const struct sfs *s, uint32_t sfnum,
                        char ret_name[NAME_MAX_LEN + 1])
{
    cleanup_free char *dir = xasprintf(
        "%s/bus/pci/devices/%s", s->config->sysfs ? s->config->sysfs : "/sys",
        s->request->pci);
    cleanup_with(dir) DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (!strstr(x->d_name, ".sf."))
            continue;
        cleanup_free char *path = xasprintf("%s/%s/sfnum", dir, x->d_name);
        if (!has_number(path, sfnum))
            continue;
        (void)snprintf(ret_name, NAME_MAX_LEN + 1, "%s", x->d_name);
        return true;
    }
    return false;
}

/* Its driver is bound when the device is there; sysfs has no events for that.
 * -ETIMEDOUT; -ECANCELED as keep(). */
static int wait_device(const struct sfs *s, uint32_t sfnum, struct error *err)
{
    const struct prep_request *r = s->request;
    char name[NAME_MAX_LEN + 1];
    for (int64_t due_ms = clock_ms() + limit_ms(s);
         !find_device(s, sfnum, name);) {
        if (r->keep && !r->keep(r->ctx))
            return error_set(err, ECANCELED, "card %s: given up", r->card);
        if (clock_ms() >= due_ms)
            return error_set(err, ETIMEDOUT,
                             "number %u is active, and no device of it "
                             "appeared within %" PRId64 " ms: see the kernel's "
                             "log",
                             sfnum, limit_ms(s));
        (void)poll(NULL, 0, PREP_KEEP_MS);
    }
    return 0;
}

/* --- making --------------------------------------------------------------- */

static bool is_free(const struct sfs *s, uint32_t sfnum)
{
    for (size_t i = 0; i < s->record.n; i++)
        if (s->record.list[i].sfnum == sfnum)
            return false;
    return !find_port(&s->there, s->pfnum, sfnum);
}

static int choose(struct sfs *s, struct error *err)
{
    struct sf_entry e = {.sfnum = SF_FIRST};
    (void)snprintf(e.uid, sizeof e.uid, "%s", s->request->uid);
    while (e.sfnum <= SF_LAST && !is_free(s, e.sfnum))
        e.sfnum++;
    if (s->record.n == SF_ENTRIES_MAX || e.sfnum > SF_LAST)
        return error_set(err, ENOSPC, "%s: has %zu of Biga's already",
                         s->request->card, s->record.n);
    sf_record_add(&s->record, &e);
    return 0;
}

/* As many numbers as are asked for; written down. */
static int choose_all(struct sfs *s, struct error *err)
{
    int n = 0, e = 0;
    for (size_t i = 0; i < s->record.n; i++)
        n += is_mine(s, &s->record.list[i]);
    if (n >= s->request->sfs)
        return 0;
    for (; n < s->request->sfs && e == 0; n++)
        e = choose(s, err);
    return e < 0 ? e : sf_record_store(&s->record, err);
}

static int make(struct sfs *s, uint32_t sfnum, bool *ret_added,
                struct error *err)
{
    const struct devlink_sf *found = find_port(&s->there, s->pfnum, sfnum);
    struct devlink_sf port = {.handle = ""};
    int e = 0;
    if (found)
        port = *found;
    else
        e = add_port(s, sfnum, &port, err);
    *ret_added = e == 0 && !found;
    if (e == 0 && !port.active)
        e = activate(s, &port, err);
    return e < 0 ? e : wait_device(s, sfnum, err);
}

static bool stays(const struct sfs *s, const struct sf_entry *e)
{
    const struct prep_request *r = s->request;
    return !r->knows || r->knows(r->ctx, e->uid);
}

/* Forget those that `goes` says, and remove them there, the last one first;
 * what cannot be removed is not forgotten. */
static int drop(struct sfs *s,
                bool (*goes)(const struct sfs *s, const struct sf_entry *e),
                struct error *err)
{
    int e = 0;
    bool any = false;
    for (size_t i = s->record.n; i-- > 0;) {
        if (!goes(s, &s->record.list[i]))
            continue;
        int r = remove_port(s, s->record.list[i].sfnum, e == 0 ? err : NULL);
        e = e == 0 ? r : e;
        if (r < 0)
            continue;
        any = true;
        memmove(&s->record.list[i], &s->record.list[i + 1],
                (s->record.n - i - 1) * sizeof *s->record.list);
        s->record.n--;
    }
    struct error why = {0};
    int stored = any ? sf_record_store(&s->record, &why) : 0;
    if (stored < 0 && e == 0)
        e = error_set(err, -stored, "%s", why.text);
    return e;
}

static bool is_left(const struct sfs *s, const struct sf_entry *e)
{
    return !is_mine(s, e) && !stays(s, e);
}

static bool is_own(const struct sfs *s, const struct sf_entry *e)
{
    return is_mine(s, e);
}

/* What the kernel, by devlink, says of why it cannot. */
static int explain(const struct prep_request *r, int e, const struct error *why,
                   struct prep_outcome *o)
{
    if (e == -ENOENT || e == -EACCES)
        return prep_say(o, "NoScalableFunctions",
                        "%s: install devlink (iproute2), or name it by "
                        "--devlink",
                        why->text);
    if (strstr(why->text, "not supported") || strstr(why->text, "No such dev"))
        return prep_say(
            o, "NoScalableFunctions",
            "%s: %.200s: scalable functions need their firmware (mlxconfig: "
            "PER_PF_NUM_SF, PF_TOTAL_SF), a kernel with them, and devlink dev "
            "eswitch set pci/%s mode switchdev",
            r->pci, why->text, r->pci);
    if (e == -ENOSPC || strstr(why->text, "No space left"))
        return prep_say(o, "SfsTooMany",
                        "%s: no room for %d more scalable functions: %.200s: "
                        "raise PF_TOTAL_SF in its firmware, or ask for less",
                        r->pci, r->sfs, why->text);
    o->again = true;
    return prep_say(o, e == -ETIMEDOUT ? "SfsTimedOut" : "SfsFailed",
                    "%s: %d scalable functions: %.300s", r->pci, r->sfs,
                    why->text);
}

/* What was added is removed again, the last one first, when one fails. */
static int make_all(struct sfs *s, struct error *err)
{
    uint32_t added[PREPARE_SFS_MAX];
    struct error ignored; /* what stays is found again, and told above */
    size_t n_added = 0;
    int e = 0, n = 0;
    for (size_t i = 0; i < s->record.n && e == 0 && n < s->request->sfs; i++) {
        bool was_added = false;
        if (!is_mine(s, &s->record.list[i]))
            continue;
        e = make(s, s->record.list[i].sfnum, &was_added, err);
        if (was_added)
            added[n_added++] = s->record.list[i].sfnum;
        n++;
    }
    while (e < 0 && e != -ECANCELED && n_added > 0)
        (void)remove_port(s, added[--n_added], &ignored);
    return e;
}

static int run(struct sfs *s, struct prep_outcome *o, struct error *err)
{
    struct error why = {0};
    int e = look(s, &why);
    if (e == 0 && s->record.n > 0)
        (void)drop(s, is_left, NULL); /* the next one tries again */
    if (e == 0)
        e = choose_all(s, &why);
    if (e == 0)
        e = make_all(s, &why);
    if (e == -ECANCELED)
        return error_set(err, ECANCELED, "%s", why.text);
    return e < 0 ? explain(s->request, e, &why, o)
                 : prep_say(o, "", "%s has %d scalable functions for it",
                            s->request->pci, s->request->sfs);
}

static int check(const struct prep_config *config, const struct prep_request *r,
                 struct error *err)
{
    if (!config->dir || !r->uid || !r->uid[0] || strlen(r->uid) > SF_UID_MAX)
        return error_set(err, EINVAL, "card %s: no pod to make functions for",
                         r->card);
    return prep_check_card(r, err);
}

int prep_sfs(const struct prep_config *config,
             const struct prep_request *request, struct prep_outcome *o,
             struct error *err)
{
    struct sfs s = {.config = config, .request = request, .lock = -1};
    int e = check(config, request, err);
    if (e < 0)
        return e;
    e = begin(&s, err);
    if (e == 0)
        e = run(&s, o, err);
    end(&s);
    return e;
}

/* --- their end, and their names ------------------------------------------- */

int prep_sfs_end(const struct prep_config *config,
                 const struct prep_request *request, struct error *err)
{
    struct sfs s = {.config = config, .request = request, .lock = -1};
    int e = check(config, request, err);
    if (e < 0)
        return e;
    bool any = false;
    e = begin(&s, err);
    for (size_t i = 0; i < s.record.n; i++)
        any |= is_mine(&s, &s.record.list[i]);
    if (e == 0 && any)
        e = look(&s, err);
    if (e == 0 && any)
        e = drop(&s, is_own, err);
    end(&s);
    return e;
}

int prep_sfs_names(const struct prep_config *config,
                   const struct prep_request *request, struct str *ret_names,
                   struct error *err)
{
    struct sfs s = {.config = config, .request = request, .lock = -1};
    char name[NAME_MAX_LEN + 1];
    int e = check(config, request, err);
    if (e < 0)
        return e;
    find_paths(&s);
    e = sf_record_load(&s.record, err);
    for (size_t i = 0; i < s.record.n && e == 0; i++)
        if (!is_mine(&s, &s.record.list[i]))
            continue;
        else if (find_device(&s, s.record.list[i].sfnum, name))
            str_addf(ret_names, "%s%s", ret_names->size ? "," : "", name);
        else
            e = error_set(err, ENODEV,
                          "%s: the scalable function %u is not there any more",
                          request->pci, s.record.list[i].sfnum);
    end(&s);
    return e;
}
