/* Any bytes as a pod that is to be run: no crash; a refusal says why; what is
 * accepted keeps to the limits, and names no path outside of its volumes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/pod/podspec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static int each(void *ctx, bool secret, const char *namespace, const char *name,
                void (*visit)(void *arg, const char *key, const char *data,
                              size_t size),
                void *arg)
{
    (void)ctx;
    (void)namespace;
    if (strcmp(name, "none") == 0)
        return -ENOENT;
    visit(arg, "a", secret ? "s" : "m", 1);
    visit(arg, "b.conf", "x\0$(A)", 6);
    return 0;
}

/* Relative, and does not climb. */
static void check_inner(const char *path)
{
    require(*path && *path != '/' && strcmp(path, "..") != 0);
    require(strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
    size_t n = strlen(path);
    require(n < 3 || strcmp(path + n - 3, "/..") != 0);
}

static void check_container(const struct podspec *p,
                            const struct podspec_container *c)
{
    require(c->name[0] && !strchr(c->name, '/') && c->image[0]);
    require(c->n_command <= PODSPEC_ARGS_MAX && !c->command[c->n_command]);
    require(c->n_args <= PODSPEC_ARGS_MAX && !c->args[c->n_args]);
    require(c->n_mounts <= PODSPEC_VOLUMES_MAX);
    for (size_t i = 0; i < c->n_mounts; i++) {
        require(c->mounts[i].volume < p->n_volumes);
        require(c->mounts[i].path[0] == '/');
        check_inner(c->mounts[i].path + 1);
        if (*c->mounts[i].sub_path)
            check_inner(c->mounts[i].sub_path);
    }
    for (size_t i = 0; i < c->n_env; i++)
        require(c->env[i].name[0] && !strchr(c->env[i].name, '='));
}

static void check_pod(const struct podspec *p)
{
    size_t n_files = 0, bytes = 0;
    require(p->name[0] && !strchr(p->name, '/') && p->name[0] != '.');
    require(p->namespace[0] && !strpbrk(p->namespace, "/."));
    require(!strchr(p->uid, '/') && p->uid[0] != '.');
    require(p->n_containers >= 1 && p->n_containers <= PODSPEC_CONTAINERS_MAX);
    require(p->n_init <= PODSPEC_CONTAINERS_MAX);
    require(p->n_volumes <= PODSPEC_VOLUMES_MAX);
    require(strlen(p->devices.text) <= DEVICE_SETS_TEXT_MAX);
    for (size_t i = 0; i < p->n_volumes; i++)
        for (size_t k = 0; k < p->volumes[i].n_files; k++) {
            check_inner(p->volumes[i].files[k].path);
            n_files++;
            bytes += p->volumes[i].files[k].size;
        }
    require(n_files <= PODSPEC_FILES_MAX && bytes <= PODSPEC_FILES_SIZE_MAX);
    for (size_t i = 0; i < p->n_init; i++)
        check_container(p, &p->init[i]);
    for (size_t i = 0; i < p->n_containers; i++)
        check_container(p, &p->containers[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct podspec_source source = {.each = each};
    for (int i = 0; i < 2; i++) {
        cleanup_with(podspec) struct podspec *p = NULL;
        struct error err = {0};
        int e = podspec_parse((const char *)data, size, "node",
                              i ? &source : NULL, &p, &err);
        if (e < 0) {
            require(!p && err.code == -e && err.text[0]);
            require(e == -EINVAL || e == -EFBIG || (e == -ENOENT && i));
            continue;
        }
        check_pod(p);
        podspec_set_env(p, "A", "$(B)");
        podspec_set_env(p, "B", "b");
        check_pod(p);
    }
    return 0;
}
