#include "advertiser/act/card/pod_files.h"

#include <errno.h>
#include <inttypes.h>

#include "advertiser/act/card/helper.h"
#include "advertiser/act/card/hostdir.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"

/* --- on a card ------------------------------------------------------------ */

static int run_args(const struct pod_access *pod,
                    const struct helper_args *args, struct error *err)
{
    struct cri_exec exec = {0};
    int e = helper_run(pod->cri, pod->helper, args, &exec, err);
    helper_exec_wipe(&exec);
    return e;
}

/* Everybody on the card may read the arguments of a process.  So the contents
 * of files are sent XORed with random bytes that only the helper and we know. */
static int send_files(const struct pod_access *pod, const char *dir,
                      const struct podspec *spec, struct error *err)
{
    size_t size = helper_args_contents(spec);
    cleanup_free char *text = xasprintf("%zu", size);
    struct cri_exec exec = {0};
    struct helper_args_pad pad = {0};
    struct helper_args ask, send;
    int e = 0;
    if (size > 0) {
        helper_args_init(&ask, "pad", dir);
        helper_args_add(&ask, text);
        e = helper_run(pod->cri, pod->helper, &ask, &exec, err);
        helper_args_fini(&ask);
        if (e == 0)
            e = helper_args_pad(&exec.out, &exec.err, size, &pad, err);
        (void)failpoint("act-after-pad");
    }
    if (e == 0) {
        helper_args_init(&send, "files", dir);
        helper_args_files(&send, spec, size > 0 ? &pad : NULL);
        e = run_args(pod, &send, err);
        helper_args_fini(&send);
    }
    helper_exec_wipe(&exec);
    return e;
}

static int make_hugepages(const struct pod_access *pod,
                          const struct podspec *spec, uint64_t page,
                          struct error *err)
{
    cleanup_free char *top = pod_dir_hugetlbfs(page, true);
    cleanup_free char *dir = pod_dir_hugepages(pod->uid, page, true);
    cleanup_free char *bytes = xasprintf("%" PRIu64, page);
    cleanup_free char *shown = pod_dir_hugetlbfs(page, false);
    struct helper_args args;
    helper_args_init(&args, "hugepages", top);
    helper_args_add(&args, bytes);
    helper_args_add(&args, dir);
    helper_args_hugepages(&args, spec, page);
    int e = run_args(pod, &args, err);
    helper_args_fini(&args);
    return e < 0 ? error_wrap(err, "%s of %s", shown, pod->place->name) : 0;
}

static int make_all_hugepages(const struct pod_access *pod,
                              const struct podspec *spec, struct error *err)
{
    struct hugepages made = {.n = 0};
    int e = 0;
    for (size_t i = 0; i < spec->n_volumes && e == 0; i++) {
        const struct podspec_volume *v = &spec->volumes[i];
        if (v->medium != PODSPEC_HUGEPAGES || hugepages_of(&made, v->page) > 0)
            continue;
        (void)hugepages_add(&made, v->page, 1);
        e = make_hugepages(pod, spec, v->page, err);
    }
    return e;
}

static int make_on_card(const struct pod_access *pod,
                        const struct podspec *spec, struct error *err)
{
    cleanup_free char *dir = pod_dir_path(pod->dirs, pod->place->name,
                                          pod->uid);
    cleanup_free char *memory = pod_dir_memory(pod->uid, true);
    struct helper_args args;
    int e = 0;
    if (spec->n_volumes == 0)
        return 0;
    if (!pod->helper[0])
        return error_set(err, ENOENT, "Biga's helper does not run on %s",
                         pod->place->name);
    if (helper_args_has(spec, PODSPEC_DISK))
        e = send_files(pod, dir, spec, err);
    if (e == 0 && helper_args_has(spec, PODSPEC_MEMORY)) {
        helper_args_init(&args, "memory", memory);
        helper_args_memory(&args, spec);
        e = run_args(pod, &args, err);
        helper_args_fini(&args);
    }
    return e < 0 ? e : make_all_hugepages(pod, spec, err);
}

static void add_pages_of(const struct podspec *spec, struct hugepages *pages)
{
    for (size_t i = 0; spec && i < spec->n_volumes; i++)
        if (spec->volumes[i].medium == PODSPEC_HUGEPAGES)
            (void)hugepages_add(pages, spec->volumes[i].page, 0);
}

static int remove_on_card(const struct pod_access *pod,
                          const struct podspec *spec, bool *ret_refused,
                          struct error *err)
{
    cleanup_free char *dir = pod_dir_path(pod->dirs, pod->place->name,
                                          pod->uid);
    cleanup_free char *memory = pod_dir_memory(pod->uid, true);
    struct helper_args args;
    struct cri_exec exec = {0};
    struct hugepages pages;
    card_sets_hugepages(pod->place, &pages);
    add_pages_of(spec, &pages);
    helper_args_init(&args, "rm", dir);
    helper_args_add(&args, memory);
    for (size_t i = 0; i < pages.n; i++) {
        cleanup_free char *huge = pod_dir_hugepages(pod->uid,
                                                    pages.list[i].page, true);
        helper_args_add(&args, huge);
    }
    int e = helper_run(pod->cri, pod->helper, &args, &exec, err);
    *ret_refused = e < 0 && exec.exit_code != 0;
    helper_args_fini(&args);
    helper_exec_wipe(&exec);
    return e;
}

/* --- on either ------------------------------------------------------------ */

static int remove_on_host(const struct pod_access *pod, struct error *err)
{
    cleanup_free char *dir = pod_dir_path(pod->dirs, pod->place->name,
                                          pod->uid);
    cleanup_free char *memory = pod_dir_memory(pod->uid, false);
    struct error other;
    int e = hostdir_remove(dir, err);
    int m = hostdir_remove(memory, e < 0 ? &other : err);
    return e < 0 ? e : m;
}

int pod_files_make(const struct pod_access *pod, const struct podspec *spec,
                   struct error *err)
{
    if (!card_is_host(pod->place))
        return make_on_card(pod, spec, err);
    cleanup_free char *dir = pod_dir_path(pod->dirs, pod->place->name,
                                          pod->uid);
    cleanup_free char *memory = pod_dir_memory(pod->uid, false);
    return hostdir_make(dir, memory, spec, err);
}

int pod_files_remove(const struct pod_access *pod, const struct podspec *spec,
                     bool *ret_refused, struct error *err)
{
    *ret_refused = card_is_host(pod->place);
    return *ret_refused ? remove_on_host(pod, err)
                        : remove_on_card(pod, spec, ret_refused, err);
}
