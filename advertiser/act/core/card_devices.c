#include "advertiser/act/core/card_devices.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "advertiser/act/card/helper.h"
#include "advertiser/act/core/card_setup.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"

enum {
    DEVICES_MAX = 64, /* of one container; as biga-card gives at once */
    DEVICE_PATH_MAX = 255,
    NAMED_MAX = 3, /* pods that a message names */
};

/* The sets that a pod asks for, as the card file has them. */
struct asked {
    struct act_device_set sets[DEVICE_SETS_MAX];
    size_t n;
};

static bool has_patterns(const char *path)
{
    return strpbrk(path, ACT_GLOB_CHARS) != NULL;
}

static const struct act_device_set *find_set(const struct act_place *place,
                                             const char *name)
{
    for (size_t i = 0; i < place->n_sets; i++)
        if (strcmp(place->sets[i].name, name) == 0)
            return &place->sets[i];
    return NULL;
}

/* -ENODEV when the card does not have one of them. */
static LOCKED int read_asked(const struct place *at, const struct pod_entry *e,
                             struct asked *ret_asked, struct error *err)
{
    const char *text = e->spec ? e->spec->devices.text : "";
    ret_asked->n = 0;
    while (*text) {
        char name[DEVICE_SET_NAME_MAX + 1];
        text = device_sets_next(text, name);
        const struct act_device_set *set = find_set(&at->desc, name);
        if (!set)
            return error_set(err, ENODEV,
                             "%s has no devices that are called \"%s\": name "
                             "them under \"devices\" in the node's card file",
                             at->desc.name, name);
        ret_asked->sets[ret_asked->n++] = *set;
    }
    return 0;
}

/* --- who has them ----------------------------------------------------------- */

/* Also one that may run: it is not known yet what an earlier run of this
 * program started. */
static LOCKED bool has_devices(const struct pod_entry *e)
{
    const struct machine *m = &e->m;
    bool has = !pod_entry_is_over(e) && e->has_devices;
    has |= machine_found_lives(&m->found);
    has |= !m->listed && (e->intent->attempt > 0 || !e->met);
    return has && e->spec && e->spec->devices.text[0] &&
           e->intent->state != ACT_GONE;
}

/* How many others have that set; `out` names some. */
static LOCKED size_t count_others(const struct place *at,
                                  const struct pod_entry *e, const char *name,
                                  struct str *out)
{
    size_t n = 0;
    for (size_t i = 0; i < at->a->n_entries; i++) {
        const struct pod_entry *other = at->a->entries[i];
        if (other == e || !pod_entry_is_on(other, at) || !has_devices(other) ||
            !device_sets_have(other->spec->devices.text, name))
            continue;
        if (n++ < NAMED_MAX)
            str_addf(out, "%s%s/%.64s", n == 1 ? "" : ", ",
                     other->intent->namespace, other->intent->name);
    }
    if (n > NAMED_MAX)
        str_add(out, ", …");
    /* whatever it is, it ends, or somebody is told */
    size_t unknown = at->n_spared_running + orphans_run(&at->orphans);
    if (unknown > 0)
        str_addf(out, "%spods that are not written down", n == 0 ? "" : ", ");
    return unknown > 0 ? SIZE_MAX : n;
}

static LOCKED int take_all(struct place *at, struct pod_entry *e,
                           const struct asked *asked, struct error *err)
{
    e->has_devices = false;
    for (size_t i = 0; i < asked->n; i++) {
        const struct act_device_set *set = &asked->sets[i];
        cleanup_str struct str who = STR_INIT(1024);
        if (count_others(at, e, set->name, &who) < set->share)
            continue;
        return error_set(err, EBUSY,
                         "the devices \"%s\" of %s are for at most %u pod%s at "
                         "one time (share in the card file), and %s %s them",
                         set->name, at->desc.name, set->share,
                         set->share == 1 ? "" : "s", str_text(&who),
                         set->share == 1 ? "has" : "have");
    }
    e->has_devices = true;
    return 0;
}

void card_devices_note_use(struct place *at, struct pod_entry *e)
{
    bool uses = has_devices(e);
    if (e->uses_devices && !uses) {
        at->n_freed++;
        card_setup_wake(at, "DevicesInUse");
    }
    e->uses_devices = uses;
}

/* --- which they are --------------------------------------------------------- */

struct finding {
    const struct connection *c;
    const char *helper; /* its container, "" it does not run */
    struct arena *arena;
    const char **list; /* DEVICES_MAX */
    size_t n;
};

static int keep(struct finding *f, const char *path, size_t size,
                struct error *err)
{
    for (size_t i = 0; i < f->n; i++)
        if (strlen(f->list[i]) == size && memcmp(f->list[i], path, size) == 0)
            return 0;
    if (f->n == DEVICES_MAX)
        return error_set(err, E2BIG, "a pod can have at most %d devices",
                         DEVICES_MAX);
    f->list[f->n++] = arena_strndup(f->arena, path, size);
    return 0;
}

/* What biga-card says: paths below /dev, in lines. */
static int read_paths(struct finding *f, const char *text, struct error *err)
{
    int e = 0;
    while (*text && e == 0) {
        size_t size = strcspn(text, "\n");
        const char *up = strstr(text, "/..");
        if (size > DEVICE_PATH_MAX || text[size] != '\n' ||
            strncmp(text, "/dev/", 5) != 0 || (up && up < text + size))
            return error_set(err, EPROTO,
                             "biga-card says \"%.*s\", which is no path of a "
                             "device",
                             (int)(size < 80 ? size : 80), text);
        e = keep(f, text, size, err);
        text += size + 1;
    }
    return e;
}

static int seek(struct finding *f, const struct act_device_set *set,
                struct error *err)
{
    struct cri_exec exec = {0};
    struct helper_args args;
    int e = 0;
    helper_args_init(&args, "devices", ACT_DEV_HELPER);
    for (size_t i = 0; i < set->n_globs; i++)
        if (has_patterns(set->globs[i]))
            helper_args_add(&args, set->globs[i]);
    if (args.n > 3) {
        e = f->helper[0] ? helper_run(f->c->cri, f->helper, &args, &exec, err)
                         : error_set(err, EAGAIN,
                                     "Biga's helper, which looks for \"%s\", "
                                     "does not run on %s",
                                     args.argv[3], f->c->place.name);
        if (e == 0)
            e = read_paths(f, str_text(&exec.out), err);
    }
    cri_exec_fini(&exec);
    helper_args_fini(&args);
    return e;
}

static int find_one(struct finding *f, const struct act_device_set *set,
                    struct error *err)
{
    size_t before = f->n;
    int e = 0;
    for (size_t i = 0; i < set->n_globs && e == 0; i++)
        if (!has_patterns(set->globs[i]))
            e = keep(f, set->globs[i], strlen(set->globs[i]), err);
    if (e == 0)
        e = seek(f, set, err);
    return e == 0 && f->n == before
               ? error_set(err, ENODEV,
                           "%s has none of the devices \"%s\" (%s%s): see to "
                           "their driver there",
                           f->c->place.name, set->name, set->globs[0],
                           set->n_globs > 1 ? " …" : "")
               : e;
}

static int find_all(struct place *at, const struct connection *c,
                    const struct asked *asked, struct arena *arena,
                    struct finding *ret_found, struct error *err)
{
    char id[CRI_ID_MAX + 1];
    int e = 0;
    act_lock(at->a);
    helper_id(at->a, c->place.name, id);
    act_unlock(at->a);
    *ret_found = (struct finding){
        .c = c,
        .helper = id,
        .arena = arena,
        .list = arena_alloc(arena, DEVICES_MAX * sizeof(char *)),
    };
    for (size_t i = 0; i < asked->n && e == 0; i++)
        e = find_one(ret_found, &asked->sets[i], err);
    ret_found->helper = NULL;
    return e;
}

int card_devices_find(struct place *at, const struct connection *c,
                      const struct pod_entry *e, struct arena *arena,
                      struct cri_container_config *config, struct error *err)
{
    struct asked asked;
    struct finding found;
    act_lock(at->a);
    int r = read_asked(at, e, &asked, err);
    act_unlock(at->a);
    if (r < 0 || asked.n == 0)
        return r;
    r = find_all(at, c, &asked, arena, &found, err);
    if (r == 0) {
        config->devices = found.list;
        config->n_devices = found.n;
    }
    return r;
}

/* --- before the pod begins -------------------------------------------------- */

static void take_known(struct place *at, const struct connection *c,
                       struct pod_entry *e, const struct asked *asked,
                       struct machine_result *r, struct error *err)
{
    struct arena arena = {0};
    struct finding found;
    act_lock(at->a);
    r->e = at->swept
               ? take_all(at, e, asked, err)
               : error_set(err, EBUSY, "it is not known yet what runs on %s",
                           at->desc.name);
    act_unlock(at->a);
    if (r->e < 0) {
        r->reason = "DevicesInUse";
        r->waits = true;
        return;
    }
    r->e = find_all(at, c, asked, &arena, &found, err);
    arena_fini(&arena);
    if (r->e == -EAGAIN) {
        act_lock(at->a);
        r->permanent = !at->a->helper_image;
        act_unlock(at->a);
        r->reason = r->permanent ? "HelperMissing" : "WaitsForHelper";
        r->waits = !r->permanent;
    } else if (r->e < 0) {
        r->reason = "NoDevices";
    }
}

void card_devices_take(struct place *at, const struct connection *c,
                       struct pod_entry *e, struct machine_result *r,
                       struct error *err)
{
    struct asked asked;
    act_lock(at->a);
    r->e = read_asked(at, e, &asked, err);
    act_unlock(at->a);
    if (r->e < 0) {
        r->reason = "NoDevices";
        r->permanent = true;
    } else if (asked.n > 0) {
        take_known(at, c, e, &asked, r, err);
    }
}
