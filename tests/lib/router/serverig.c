#include "tests/lib/router/serverig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/tmpdir.h"

struct cardserver *serverig_server(const char *path)
{
    static const struct cardserver_times quick = {0};
    const struct h2_config config = {.socket = path};
    return cardserver_start(&config, &quick);
}

void serverig_start(struct serverig *r)
{
    struct error err = {0};
    const struct serve_config config = {
        .listen = r->listen,
        .home = r->home_path,
        .state = r->state,
        .kubelet_dir = r->kubelet,
        .pod_logs = r->kubelet,
        .node = "n1",
        .cluster = "c",
        .handler = "xpu",
        .remote_handler = "",
        .default_remote = "",
        .helper_image = "biga-card:1",
        .card_dir = "/var/lib/biga",
        .hooks = "",
        .timeout_ms = SERVERIG_CALL_MS,
        .pull_timeout_ms = SERVERIG_CALL_MS,
        .images = {.high = 85, .low = 80},
        .probe_ms = 100,
        .lost_ms = 4 * SERVERIG_CALL_MS, /* four times what a probe may take */
        .fresh_ms = SERVERIG_CALL_MS,
        .status_ms = SERVERIG_CALL_MS,
        .collect_ms = 20,
        .places = r->places,
        .n_places = 2,
    };
    cr_assert_eq(serve_start(&config, &r->serve, &err), 0, "%s", err.text);
    cr_assert_eq(cri_create(&r->to, &r->kubelet_side, &err), 0, "%s", err.text);
}

void serverig_stop(struct serverig *r)
{
    cri_destroy(r->kubelet_side);
    serve_stop(r->serve, 0);
}

void serverig_open(struct serverig *r)
{
    *r = (struct serverig){.dir = tmpdir_create()};
    log_set_level(LOG_ERROR);
    r->listen = xasprintf("%s/cri.sock", r->dir);
    r->home_path = xasprintf("%s/home.sock", r->dir);
    r->state = xasprintf("%s/state", r->dir);
    r->kubelet = xasprintf("%s/kubelet", r->dir);
    r->url = xasprintf("unix://%s", r->listen);
    r->to.endpoint = r->url;
    cr_assert_eq(mkdir(r->state, 0700), 0);
    cr_assert_eq(mkdir(r->kubelet, 0700), 0);
    r->home = serverig_server(r->home_path);
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/card-%d", r->dir, i);
        struct act_place *p = &r->places[i];
        (void)snprintf(p->name, sizeof p->name, "card-0000-1%d-00", i);
        (void)snprintf(p->pci, sizeof p->pci, "0000:1%d:00.0", i);
        (void)snprintf(p->arch, sizeof p->arch, "arm64");
        (void)snprintf(p->endpoint, sizeof p->endpoint, "unix://%s", path);
        r->cards[i] = serverig_server(path);
    }
    serverig_start(r);
}

void serverig_close(struct serverig *r)
{
    serverig_stop(r);
    struct cardserver *servers[] = {r->home, r->cards[0], r->cards[1]};
    for (size_t i = 0; i < ARRAY_LEN(servers); i++)
        if (servers[i])
            cardserver_stop(servers[i]);
    tmpdir_remove(r->dir);
    free(r->listen);
    free(r->home_path);
    free(r->state);
    free(r->kubelet);
    free(r->url);
}

/* --- pods ------------------------------------------------------------------ */

void serverig_asked_init(struct serverig_asked *a, const char *name,
                         const char *handler, const char *card)
{
    a->allocation =
        card ? xasprintf("{\"pod\":{\"namespace\":\"ns\",\"name\":\"%s\","
                         "\"uid\":\"uid-%s\",\"role\":\"xpu\"},\"node\":\"n1\","
                         "\"cards\":[{\"id\":\"%s\"}],\"need\":{\"cores\":2,"
                         "\"memoryMiB\":64}}",
                         name, name, card)
             : NULL;
    a->annotation = (struct cri_pair){"biga.dev/allocation", a->allocation};
    a->config = (struct cri_sandbox_config){
        .namespace = "ns",
        .name = name,
        .uid = xasprintf("uid-%s", name),
        .hostname = name,
        .log_directory = "",
        .annotations = {&a->annotation, card != NULL},
        .runtime_handler = handler,
        .cgroup_parent = "",
        .run_as_user = -1,
    };
}

void serverig_asked_fini(struct serverig_asked *a)
{
    free((char *)(uintptr_t)a->config.uid);
    free(a->allocation);
}

int serverig_run(struct serverig *r, const char *name, const char *handler,
                 const char *card, char *ret_id, struct error *err)
{
    struct serverig_asked a;
    *err = (struct error){0};
    serverig_asked_init(&a, name, handler, card);
    int e = cri_run_sandbox(r->kubelet_side, &a.config, SERVERIG_CALL_MS,
                            ret_id, err);
    serverig_asked_fini(&a);
    return e;
}

int serverig_create_again(struct serverig *r, const char *name,
                          const char *sandbox_id, uint32_t attempt,
                          char *ret_id, struct error *err)
{
    struct serverig_asked a;
    const struct cri_container_config config = {
        .name = "main",
        .attempt = attempt,
        .image = "busybox",
        .working_dir = "",
        .log_path = "",
        .cpuset_cpus = "",
        .cpuset_mems = "",
        .run_as_user = -1,
        .run_as_group = -1,
    };
    *err = (struct error){0};
    serverig_asked_init(&a, name, "xpu", "card-0000-10-00");
    int e = cri_create_container(r->kubelet_side, sandbox_id, &config,
                                 &a.config, SERVERIG_CALL_MS, ret_id, err);
    serverig_asked_fini(&a);
    return e;
}

int serverig_create(struct serverig *r, const char *name,
                    const char *sandbox_id, char *ret_id, struct error *err)
{
    return serverig_create_again(r, name, sandbox_id, 0, ret_id, err);
}

void serverig_make(struct serverig *r, char *ret_pod, char *ret_id)
{
    struct error err;
    cr_assert_eq(serverig_run(r, "a", "xpu", "card-0000-10-00", ret_pod, &err),
                 0, "%s", err.text);
    cr_assert_eq(serverig_create(r, "a", ret_pod, ret_id, &err), 0, "%s",
                 err.text);
}
