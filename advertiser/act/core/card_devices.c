#include "advertiser/act/core/card_devices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "advertiser/act/card/helper.h"
#include "advertiser/act/core/card_setup.h"
#include "advertiser/act/core/config.h"
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

/* -ENODEV when the card does not have one of them. */
static LOCKED int read_asked(const struct place *at, const struct pod_entry *e,
                             struct asked *ret_asked, struct error *err)
{
    const char *text = e->spec ? e->spec->devices.text : "";
    ret_asked->n = 0;
    while (*text) {
        char name[DEVICE_SET_NAME_MAX + 1];
        text = device_sets_next(text, name);
        const struct act_device_set *set = card_set(&at->desc, name);
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

/* It runs, or may: it is not known yet what an earlier run of this program
 * started. */
static LOCKED bool may_live(const struct pod_entry *e)
{
    const struct machine *m = &e->m;
    return e->intent->state != ACT_GONE &&
           (machine_found_lives(&m->found) ||
            (!m->listed && (e->intent->attempt > 0 || !e->met)));
}

static LOCKED bool has_devices(const struct pod_entry *e)
{
    bool given = !pod_entry_is_over(e) && e->has_devices &&
                 e->intent->state != ACT_GONE;
    return e->spec && e->spec->devices.text[0] && (given || may_live(e));
}

static LOCKED void name_pod(const struct pod_entry *e, size_t n,
                            struct str *out)
{
    if (n < NAMED_MAX)
        str_addf(out, "%s%s/%.64s", n == 0 ? "" : ", ", e->intent->namespace,
                 e->intent->name);
    else if (n == NAMED_MAX)
        str_add(out, ", …");
}

/* How many others have that set; `out` names some.  Of pods that cannot be
 * read, or are not written down, nobody knows: SIZE_MAX.  They end, or somebody
 * is told. */
static LOCKED size_t count_others(const struct place *at,
                                  const struct pod_entry *e, const char *name,
                                  struct str *out)
{
    size_t n = 0;
    bool unknown = false;
    for (size_t i = 0; i < at->a->n_entries; i++) {
        const struct pod_entry *other = at->a->entries[i];
        if (other == e || !pod_entry_is_on(other, at) ||
            pod_entry_is_helper(other))
            continue;
        bool unread = !other->spec && may_live(other);
        unknown |= unread;
        if (unread || (has_devices(other) &&
                       device_sets_have(other->spec->devices.text, name)))
            name_pod(other, n++, out);
    }
    if (at->n_spared_running + orphans_run(&at->orphans) > 0) {
        unknown = true;
        str_addf(out, "%spods that are not written down", n == 0 ? "" : ", ");
    }
    return unknown ? SIZE_MAX : n;
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
                         "one time (share in the card file), and are held by "
                         "%s",
                         set->name, at->desc.name, set->share,
                         set->share == 1 ? "" : "s", str_text(&who));
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
    bool unheard; /* no answer came, which says nothing of the devices */
    const char *unsought; /* a pattern, for which there is no helper; NULL */
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
    if (args.n > 3)
        e = f->helper[0] ? helper_run(f->c->cri, f->helper, &args, &exec, err)
                         : -ENOENT;
    if (e == -ENOENT) /* the arguments go */
        f->unsought = arena_strndup(f->arena, args.argv[3],
                                    strlen(args.argv[3]));
    f->unheard = e < 0 && exec.exit_code == 0;
    if (e == 0 && args.n > 3)
        e = read_paths(f, str_text(&exec.out), err);
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
    return e == 0 && f->n == before && set->n_globs > 0
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

/* There is no helper: true when there will be none. */
static bool explain_helper(struct actuator *a, const struct pod_entry *e,
                           const struct finding *f, struct machine_result *r,
                           struct error *err)
{
    act_lock(a);
    bool none = !a->helper_image || helper_is_given_up(a, e);
    act_unlock(a);
    r->waits = !none;
    r->reason = none ? "HelperMissing" : "WaitsForHelper";
    r->e = error_set(err, none ? ENODEV : EAGAIN,
                     "Biga's helper, which looks for the devices \"%s\", does "
                     "not run on %s%s%s",
                     f->unsought, f->c->place.name,
                     !none             ? " yet"
                     : a->helper_image ? ": import there the image "
                                       : ": give the advertiser its image",
                     none && a->helper_image ? a->helper_image : "");
    return none;
}

/* As card_devices_find() says; true: there will be no helper. */
static bool find(struct place *at, const struct connection *c,
                 const struct pod_entry *e, struct arena *arena,
                 struct cri_container_config *config, struct machine_result *r,
                 struct error *err)
{
    struct asked asked;
    struct finding found = {0};
    act_lock(at->a);
    r->e = read_asked(at, e, &asked, err);
    act_unlock(at->a);
    if (r->e == 0 && asked.n > 0)
        r->e = find_all(at, c, &asked, arena, &found, err);
    config->devices = found.list;
    config->n_devices = found.n;
    if (found.unsought)
        return explain_helper(at->a, e, &found, r, err);
    if (r->e < 0 && !found.unheard)
        r->reason = "NoDevices";
    return false;
}

void card_devices_find(struct place *at, const struct connection *c,
                       const struct pod_entry *e, struct arena *arena,
                       struct cri_container_config *config,
                       struct machine_result *r, struct error *err)
{
    (void)find(at, c, e, arena, config, r, err);
}

/* --- before the pod begins -------------------------------------------------- */

static LOCKED void take(struct place *at, struct pod_entry *e,
                        struct machine_result *r, struct error *err)
{
    struct asked asked;
    r->e = read_asked(at, e, &asked, err);
    if (r->e < 0) {
        r->reason = "NoDevices";
        r->permanent = true;
        return;
    }
    if (asked.n > 0)
        r->e = at->swept ? take_all(at, e, &asked, err)
                         : error_set(err, EBUSY,
                                     "it is not known yet what runs on %s",
                                     at->desc.name);
    if (r->e < 0) {
        r->reason = "DevicesInUse";
        r->waits = true;
    }
}

void card_devices_take(struct place *at, struct pod_entry *e,
                       struct machine_result *r, struct error *err)
{
    act_lock(at->a);
    take(at, e, r, err);
    act_unlock(at->a);
}

void card_devices_seek(struct place *at, const struct connection *c,
                       struct pod_entry *e, struct machine_result *r,
                       struct error *err)
{
    struct arena arena = {0};
    struct cri_container_config config = {0};
    r->permanent = find(at, c, e, &arena, &config, r, err);
    arena_fini(&arena);
}

/* --- what else they let pods have -------------------------------------------- */

/* What the sets that it asks for give together. */
static LOCKED void add_sets(const struct place *at, const struct podspec *spec,
                            struct rights *rights, struct hugepages *pages)
{
    const char *text = spec->devices.text;
    while (*text) {
        char name[DEVICE_SET_NAME_MAX + 1];
        text = device_sets_next(text, name);
        const struct act_device_set *set = card_set(&at->desc, name);
        for (size_t i = 0; set && i < set->hugepages.n; i++)
            (void)hugepages_add(pages, set->hugepages.list[i].page,
                                set->hugepages.list[i].bytes);
        if (set && set->ipc_lock)
            rights_add(rights, "IPC_LOCK");
    }
}

static int check_hugepages(const struct podspec *spec, const char *place,
                           const struct hugepages *given, struct error *err)
{
    struct hugepages asked;
    podspec_hugepages(spec, &asked);
    for (size_t i = 0; i < asked.n; i++) {
        uint64_t page = asked.list[i].page, bytes = asked.list[i].bytes;
        uint64_t most = hugepages_of(given, page);
        char size[HUGEPAGES_TEXT_SIZE];
        if (bytes <= most)
            continue;
        hugepages_page_text(page, size);
        return error_set(err, EPERM,
                         "spec: its containers have limits of %" PRIu64
                         " KiB of hugepages-%s, and may have %" PRIu64
                         " KiB by the devices \"%s\" of %s: its operator would "
                         "have to give more under \"hugepages\" of one of them "
                         "in the card file",
                         bytes >> 10, size, most >> 10, spec->devices.text,
                         place);
    }
    return 0;
}

int card_devices_check(struct actuator *a, const char *place,
                       const struct podspec *spec, struct error *err)
{
    struct hugepages pages = {.n = 0};
    act_lock(a);
    struct rights rights = a->rights;
    const struct place *at = place_find(a, place);
    if (at)
        add_sets(at, spec, &rights, &pages);
    act_unlock(a);
    int e = rights_check(&rights, spec, err);
    return e < 0 ? e : check_hugepages(spec, place, &pages, err);
}

/* "2MB", as container runtimes call what Kubernetes calls 2Mi. */
static const char *page_name(uint64_t page, struct arena *arena)
{
    char text[HUGEPAGES_TEXT_SIZE];
    hugepages_page_text(page, text);
    char *end = strchr(text, 'i');
    if (end)
        *end = 'B';
    return arena_strndup(arena, text, strlen(text));
}

void card_devices_limit(struct place *at, const struct podspec *spec,
                        size_t unit, struct arena *arena,
                        struct cri_container_config *config)
{
    const struct hugepages *own = &config_unit(spec, unit)->hugepages;
    struct hugepages all;
    act_lock(at->a);
    card_sets_hugepages(&at->desc, &all);
    act_unlock(at->a);
    for (size_t i = 0; i < own->n; i++)
        (void)hugepages_add(&all, own->list[i].page, 0);
    struct cri_hugepages *list = arena_alloc(arena, all.n * sizeof *list + 1);
    for (size_t i = 0; i < all.n; i++)
        list[i] = (struct cri_hugepages){
            .page_size = page_name(all.list[i].page, arena),
            .limit = hugepages_of(own, all.list[i].page),
        };
    config->hugepages = list;
    config->n_hugepages = all.n;
}
