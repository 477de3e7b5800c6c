#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "router/serve/ids.h"
#include "tests/lib/tmpdir.h"

static const char A[] =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaa";
static const char B[] =
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    "bbbbbbbbb";

static struct object *sandbox(const char *id, const char *remote)
{
    struct object *o = object_create(NULL);
    (void)snprintf(o->remote, sizeof o->remote, "%s", remote);
    o->pod.namespace = object_keep(o, "ns");
    o->pod.name = object_keep(o, "pod \"x\"");
    o->pod.uid = object_keep(o, "u-1");
    o->pod.attempt = 3;
    o->pod.handler = object_keep(o, "xpu");
    o->pod.host_network = true;
    o->log_directory = object_keep(o, "/var/log/pods/x");
    o->cores = 4;
    o->memory_mib = 512;
    o->hash = UINT64_C(0xffeeddccbbaa9988) >> 11 << 11;
    object_bind(o, id);
    return o;
}

static struct object *container(const char *id, struct object *in)
{
    static struct mount mounts[] = {
        {.container_path = "/etc/hosts",
         .host_path = "/k/hosts",
         .read_only = true},
        {.container_path = "/data", .host_path = "/k/data"}};
    struct object *o = object_create(in);
    o->container.name = object_keep(o, "main");
    o->container.attempt = 1;
    o->container.user_image = object_keep(o, "busybox");
    o->container.log_path = object_keep(o, "/var/log/pods/x/main/1.log");
    o->container.mounts = (struct proto_bytes){"a\0b", 3};
    o->log_key = object_keep(o, "key");
    o->mounts = mounts;
    o->n_mounts = 2;
    object_bind(o, id);
    return o;
}

static void add(struct ids *s, struct object *o)
{
    struct error err = {0};
    cr_assert_eq(ids_add(s, o, &err), 0, "%s", err.text);
    object_unref(o);
}

static struct ids *open_in(const char *dir)
{
    struct ids *s = NULL;
    struct error err = {0};
    cr_assert_eq(ids_open(dir, &s, &err), 0, "%s", err.text);
    return s;
}

Test(ids, what_was_added_is_there_after_a_restart)
{
    char *dir = tmpdir_create();
    struct ids *s = open_in(dir);
    add(s, sandbox(A, "card-0"));
    struct object *pod = ids_find(s, A);
    add(s, container(B, pod));
    object_unref(pod);
    ids_close(s);
    s = open_in(dir);
    struct object *c = ids_find(s, B);
    cr_assert_not_null(c);
    cr_assert_str_eq(c->remote, "card-0");
    cr_assert_str_eq(c->container.id, B);
    cr_assert_str_eq(c->container.name, "main");
    cr_assert_str_eq(c->container.user_image, "busybox");
    cr_assert_eq(c->container.mounts.size, 3);
    cr_assert_eq(memcmp(c->container.mounts.data, "a\0b", 3), 0);
    cr_assert_eq(c->n_mounts, 2);
    cr_assert_str_eq(c->mounts[1].host_path, "/k/data");
    cr_assert(c->mounts[0].read_only);
    const struct object *p = object_pod(c);
    cr_assert_eq(c->container.sandbox, &p->pod);
    cr_assert_str_eq(p->id, A);
    cr_assert_str_eq(p->pod.name, "pod \"x\"");
    cr_assert_eq(p->pod.attempt, 3);
    cr_assert(p->pod.host_network);
    cr_assert_eq(p->cores, 4);
    cr_assert_eq(p->memory_mib, 512);
    cr_assert_eq(p->hash, UINT64_C(0xffeeddccbbaa9988) >> 11 << 11);
    object_unref(c);
    ids_close(s);
    tmpdir_remove(dir);
}

Test(ids, with_a_sandbox_go_its_containers)
{
    char *dir = tmpdir_create();
    struct ids *s = open_in(dir);
    struct object *pod = sandbox(A, "card-0");
    add(s, object_ref(pod));
    add(s, container(B, pod));
    object_unref(pod);
    ids_remove(s, A);
    cr_assert_null(ids_find(s, A));
    cr_assert_null(ids_find(s, B));
    ids_remove(s, A);
    ids_close(s);
    s = open_in(dir);
    struct object **list;
    cr_assert_eq(ids_list(s, NULL, &list), 0);
    ids_list_free(list, 0);
    ids_close(s);
    tmpdir_remove(dir);
}

Test(ids, they_are_found_by_the_kubelets_names)
{
    struct ids *s = open_in(NULL);
    struct object *pod = sandbox(A, "card-0");
    add(s, object_ref(pod));
    add(s, container(B, pod));
    object_unref(pod);
    struct object *o = ids_find_pod(s, "u-1", 3);
    cr_assert_str_eq(o->id, A);
    object_unref(o);
    cr_assert_null(ids_find_pod(s, "u-1", 2));
    o = ids_find_container(s, A, "main", 1);
    cr_assert_str_eq(o->id, B);
    object_unref(o);
    cr_assert_null(ids_find_container(s, A, "main", 0));
    struct object **list;
    size_t n = ids_list(s, "card-0", &list);
    cr_assert_eq(n, 2);
    cr_assert_str_eq(list[0]->id, A);
    ids_list_free(list, n);
    n = ids_list(s, "card-1", &list);
    cr_assert_eq(n, 0);
    ids_list_free(list, n);
    ids_close(s);
}

Test(ids, no_remote_names_anothers)
{
    struct ids *s = open_in(NULL);
    struct error err = {0};
    add(s, sandbox(A, "card-0"));
    struct object *o = sandbox(A, "card-1");
    cr_assert_eq(ids_add(s, o, &err), -EEXIST);
    cr_assert(strstr(err.text, "card-1 says the id"), "%s", err.text);
    object_unref(o);
    ids_close(s);
}

Test(ids, what_cannot_be_read_is_set_aside)
{
    char *dir = tmpdir_create();
    struct ids *s = open_in(dir);
    add(s, sandbox(A, "card-0"));
    ids_close(s);
    cleanup_free char *path = xasprintf("%s/%s", dir, A);
    cleanup_free char *bad = xasprintf("%s.bad", path);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    cr_assert_geq(fputs("{\"id\":7}", f), 0);
    cr_assert_eq(fclose(f), 0);
    s = open_in(dir);
    cr_assert_null(ids_find(s, A));
    cr_assert_eq(access(bad, F_OK), 0);
    ids_close(s);
    tmpdir_remove(dir);
}
