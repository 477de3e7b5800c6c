#include "router/serve/helper.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "advertiser/act/card/pod_dir.h"
#include "lib/io/log.h"

#define LABEL_IMAGE "biga.dev/helper-image" /* what it was made of */

struct helper {
    char *image, *card_dir, *cluster, *node, *remote, *uid;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool making;             /* a thread looks for it, or makes it */
    char id[CRI_ID_MAX + 1]; /* "" not known */
};

struct helper *helper_create(const struct helper_config *config)
{
    struct helper *h = xcalloc(1, sizeof *h);
    h->image = xstrdup(config->image);
    h->card_dir = xstrdup(config->card_dir);
    h->cluster = xstrdup(config->cluster);
    h->node = xstrdup(config->node);
    h->remote = xstrdup(config->remote);
    h->uid = xasprintf(HELPER_UID "%s", config->remote);
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_cond_init(&h->done, NULL);
    return h;
}

void helper_destroy(struct helper *h)
{
    if (!h)
        return;
    (void)pthread_mutex_destroy(&h->lock);
    (void)pthread_cond_destroy(&h->done);
    free(h->image);
    free(h->card_dir);
    free(h->cluster);
    free(h->node);
    free(h->remote);
    free(h->uid);
    free(h);
}

/* --- what is there ----------------------------------------------------------
 */

enum { N_LABELS = 3 };

static struct cri_pairs labels(const struct helper *h,
                               struct cri_pair list[N_LABELS])
{
    list[0] = (struct cri_pair){ACT_LABEL_CLUSTER, h->cluster};
    list[1] = (struct cri_pair){ACT_LABEL_NODE, h->node};
    list[2] = (struct cri_pair){ACT_LABEL_UID, h->uid};
    return (struct cri_pairs){list, N_LABELS};
}

static bool is_ready(const struct cri_sandboxes *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].id, id) == 0)
            return s->list[i].ready;
    return false;
}

/* One that runs, of the image that is wanted; another one's biga-card may lack
 * words that we call. */
static int adopt(struct helper *h, struct cri *cri,
                 const struct cri_sandboxes *sandboxes,
                 char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    struct cri_pair list[N_LABELS];
    struct cri_containers found = {0};
    int r = cri_list_containers(cri, labels(h, list), HELPER_LIST_MS, &found,
                                err);
    ret_id[0] = '\0';
    for (size_t i = 0; r == 0 && i < found.n; i++) {
        const struct cri_container *c = &found.list[i];
        const char *image = label_find(c->labels, c->n_labels, LABEL_IMAGE);
        if (c->state == CRI_RUNNING && strcmp(image, h->image) == 0 &&
            is_ready(sandboxes, c->sandbox_id))
            memcpy(ret_id, c->id, sizeof c->id);
    }
    cri_containers_fini(&found);
    return r;
}

/* `*ret_attempt` is one that none of them has. */
static int clear(struct cri *cri, const struct cri_sandboxes *s,
                 uint32_t *ret_attempt, struct error *err)
{
    *ret_attempt = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct cri_sandbox *old = &s->list[i];
        if (old->attempt >= *ret_attempt)
            *ret_attempt = old->attempt + 1;
        int r = cri_stop_sandbox(cri, old->id, HELPER_MAKE_MS, err);
        if (r == 0)
            r = cri_remove_sandbox(cri, old->id, HELPER_MAKE_MS, err);
        if (r < 0 && r != -ENOENT)
            return error_wrap(err, "the helper of before");
    }
    return 0;
}

/* --- making it --------------------------------------------------------------
 */

static struct cri_sandbox_config
sandbox_config(const struct helper *h, struct cri_pairs pairs, uint32_t attempt)
{
    return (struct cri_sandbox_config){
        .namespace = "biga-system",
        .name = h->uid,
        .uid = h->uid,
        .attempt = attempt,
        .hostname = "",
        .log_directory = "",
        .labels = pairs,
        .runtime_handler = "",
        .cgroup_parent = "",
        .host_network = true,
        .run_as_user = -1,
    };
}

/* `mounting`: it may mount, for volumes in memory with a limit of their own,
 * and others see that. */
static int create_one(struct helper *h, struct cri *cri, const char *sandbox_id,
                      const struct cri_sandbox_config *sandbox, bool mounting,
                      char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    static const char *const command[] = {"/biga-card", "wait"};
    static const char *const rights[] = {"SYS_ADMIN"};
    struct cri_pair list[N_LABELS + 1];
    (void)labels(h, list);
    list[N_LABELS] = (struct cri_pair){LABEL_IMAGE, h->image};
    const struct cri_mount mounts[] = {
        {.container_path = h->card_dir, .host_path = h->card_dir},
        {.container_path = ACT_MEMORY_HELPER,
         .host_path = ACT_MEMORY_DIR,
         .shared = mounting},
    };
    const struct cri_container_config config = {
        .name = "helper",
        .image = h->image,
        .attempt = sandbox->attempt,
        .command = command,
        .n_command = ARRAY_LEN(command),
        .working_dir = "",
        .labels = {list, N_LABELS + 1},
        .mounts = mounts,
        .n_mounts = ARRAY_LEN(mounts),
        .cap_add = rights,
        .n_cap_add = mounting ? ARRAY_LEN(rights) : 0,
        .log_path = "",
        .cpuset_cpus = "",
        .cpuset_mems = "",
        .run_as_user = -1,
        .run_as_group = -1,
    };
    return cri_create_container(cri, sandbox_id, &config, sandbox,
                                HELPER_MAKE_MS, ret_id, err);
}

/* Where mounts of a card are nobody else's, its runtime refuses to share them;
 * limits of volumes in memory do not hold there then. */
static int create(struct helper *h, struct cri *cri, const char *sandbox_id,
                  const struct cri_sandbox_config *sandbox,
                  char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    int r = create_one(h, cri, sandbox_id, sandbox, true, ret_id, err);
    if (r == 0 || cri_end(cri)->code <= GRPC_OK || r == -EEXIST)
        return r;
    log_event(LOG_WARN, "helper-without-mounts", "remote", h->remote, "error",
              err->text, NULL);
    return create_one(h, cri, sandbox_id, sandbox, false, ret_id, err);
}

static int need_image(struct helper *h, struct cri *cri,
                      const struct cri_sandbox_config *sandbox,
                      struct error *err)
{
    struct cri_image found = {0};
    int r = cri_image_status(cri, h->image, HELPER_LIST_MS, &found, err);
    if (r < 0 || found.present)
        return r;
    r = cri_pull_image(cri, h->image, sandbox, HELPER_PULL_MS, err);
    if (r == 0 || cri_end(cri)->code < 0)
        return r;
    return error_set(err, ENOENT,
                     "the image %.200s is not on %.100s, and cannot be pulled "
                     "(%.100s): import it there",
                     h->image, h->remote, cri_end(cri)->message);
}

static int make(struct helper *h, struct cri *cri, uint32_t attempt,
                char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    struct cri_pair list[N_LABELS];
    char sandbox_id[CRI_ID_MAX + 1];
    const struct cri_sandbox_config sandbox = sandbox_config(h, labels(h, list),
                                                             attempt);
    int r = need_image(h, cri, &sandbox, err);
    if (r == 0)
        r = cri_run_sandbox(cri, &sandbox, HELPER_MAKE_MS, sandbox_id, err);
    if (r == 0)
        r = create(h, cri, sandbox_id, &sandbox, ret_id, err);
    if (r == 0)
        r = cri_start_container(cri, ret_id, HELPER_MAKE_MS, err);
    if (r == 0)
        log_event(LOG_INFO, "helper-started", "remote", h->remote, "image",
                  h->image, "container", ret_id, NULL);
    return r;
}

static int find_or_make(struct helper *h, struct cri *cri,
                        char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    struct cri_pair list[N_LABELS];
    struct cri_sandboxes found = {0};
    uint32_t attempt;
    int r = cri_list_sandboxes(cri, labels(h, list), HELPER_LIST_MS, &found,
                               err);
    if (r < 0)
        return r;
    r = adopt(h, cri, &found, ret_id, err);
    if (r == 0 && !ret_id[0])
        r = clear(cri, &found, &attempt, err);
    if (r == 0 && !ret_id[0])
        r = make(h, cri, attempt, ret_id, err);
    cri_sandboxes_fini(&found);
    return r;
}

/* --- who needs it ------------------------------------------------------------
 */

/* It is known: true.  Else the caller is to look for it. */
static bool await(struct helper *h, char ret_id[CRI_ID_MAX + 1])
{
    hold_lock(&h->lock);
    while (h->making)
        (void)pthread_cond_wait(&h->done, &h->lock);
    h->making = !h->id[0];
    memcpy(ret_id, h->id, sizeof h->id);
    return !h->making;
}

static void tell(struct helper *h, const char *id)
{
    hold_lock(&h->lock);
    h->making = false;
    (void)snprintf(h->id, sizeof h->id, "%s", id);
    (void)pthread_cond_broadcast(&h->done);
}

int helper_ready(struct helper *h, struct cri *cri, char ret_id[CRI_ID_MAX + 1],
                 struct error *err)
{
    char id[CRI_ID_MAX + 1] = "";
    if (!await(h, id)) {
        int r = find_or_make(h, cri, id, err);
        tell(h, r < 0 ? "" : id);
        if (r < 0)
            return error_wrap(err, "Biga's helper on %.100s", h->remote);
    }
    memcpy(ret_id, id, sizeof id);
    return 0;
}

bool helper_known(struct helper *h, char ret_id[CRI_ID_MAX + 1])
{
    hold_lock(&h->lock);
    memcpy(ret_id, h->id, sizeof h->id);
    return h->id[0] != '\0';
}

void helper_lost(struct helper *h, const char *id)
{
    hold_lock(&h->lock);
    if (strcmp(h->id, id) == 0)
        h->id[0] = '\0';
}
