/* deviceplugin - a device plugin of a kubelet, for tests: it has the devices
 * that it is told, prefers those that it was told first, whatever the others of
 * a pod are, and writes into each container which it got.
 *
 *   deviceplugin KUBELET-DIR RESOURCE ID…
 *
 * Each container that gets some has them in the variable GIVEN, with commas
 * between them.  It is registered again with each kubelet that comes, and says
 * "registered" each time.  It runs until it is killed.  The messages are those
 * of k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/grpc/grpc.h"
#include "lib/grpcd/grpcd_call.h"

enum { LOOK_MS = 200, CALL_MS = 10000, MESSAGE_MAX = 1 << 20 };

#define SERVICE "/v1beta1.DevicePlugin/"
#define OURS "test-devices.sock"

static const char *resource;
static char **ids;
static size_t n_ids;

static struct proto_bytes first(struct grpcd_call *call)
{
    struct proto_bytes b = {"", 0};
    const char *data = grpcd_call_first(call, &b.size);
    b.data = data ? data : "";
    return b;
}

static void write_options(struct str *out)
{
    proto_add_varint(out, 2, 1); /* get_preferred_allocation_available */
}

static void on_options(void *ctx, struct grpcd_call *call)
{
    (void)ctx;
    cleanup_str struct str out = STR_INIT(MESSAGE_MAX);
    write_options(&out);
    grpcd_call_answer(call, str_text(&out), out.size);
}

static void on_cancel(void *call)
{
    grpcd_call_finish(call, GRPC_CANCELLED, "");
}

/* All are healthy for ever; the stream stays. */
static void on_watch(void *ctx, struct grpcd_call *call)
{
    (void)ctx;
    cleanup_str struct str out = STR_INIT(MESSAGE_MAX);
    for (size_t i = 0; i < n_ids; i++) {
        size_t device = proto_open(&out, 1);
        proto_add_text(&out, 1, ids[i]);
        proto_add_text(&out, 2, "Healthy");
        proto_close(&out, device);
    }
    if (grpcd_call_send(call, str_text(&out), out.size) == 0)
        grpcd_call_on_cancel(call, on_cancel, call);
    else
        grpcd_call_finish(call, GRPC_UNAVAILABLE, "");
}

/* Is it in a repeated text of the message? */
static bool has(struct proto_bytes message, uint32_t number, const char *id)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == number && f.kind == PROTO_BYTES &&
            proto_equals(f.bytes, id))
            return true;
    return false;
}

/* The first that are there. */
static void prefer(struct proto_bytes request, struct str *out)
{
    struct proto_field size = {0};
    uint64_t n = 0;
    if (proto_find(request, 3, PROTO_VARINT, &size, NULL) < 0)
        return;
    size_t response = proto_open(out, 1);
    for (size_t i = 0; i < n_ids && n < size.value; i++)
        if (has(request, 1, ids[i])) {
            proto_add_text(out, 1, ids[i]);
            n++;
        }
    proto_close(out, response);
}

static void allocate(struct proto_bytes request, struct str *out)
{
    struct proto_reader r;
    struct proto_field f;
    cleanup_str struct str given = STR_INIT(MESSAGE_MAX);
    proto_reader_init(&r, request);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == 1 && f.kind == PROTO_BYTES) {
            str_add(&given, given.size ? "," : "");
            str_add_n(&given, f.bytes.data, f.bytes.size);
        }
    size_t response = proto_open(out, 1);
    proto_add_pair(out, 1, "GIVEN", str_text(&given));
    proto_close(out, response);
}

/* Both ask for each container, and are answered so. */
static void on_containers(void *ctx, struct grpcd_call *call)
{
    void (*answer)(struct proto_bytes, struct str *) =
        strcmp(grpcd_call_method(call), SERVICE "Allocate") == 0 ? allocate
                                                                 : prefer;
    struct proto_reader r;
    struct proto_field f;
    cleanup_str struct str out = STR_INIT(MESSAGE_MAX);
    (void)ctx;
    proto_reader_init(&r, first(call));
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == 1 && f.kind == PROTO_BYTES)
            answer(f.bytes, &out);
    grpcd_call_answer(call, str_text(&out), out.size);
}

static void on_route(void *ctx, const struct grpcd_call *call,
                     struct grpcd_route *ret_route)
{
    static const struct {
        const char *method;
        grpcd_handler_f *handle;
    } methods[] = {
        {SERVICE "GetDevicePluginOptions", on_options},
        {SERVICE "ListAndWatch", on_watch},
        {SERVICE "GetPreferredAllocation", on_containers},
        {SERVICE "Allocate", on_containers},
    };
    (void)ctx;
    *ret_route = (struct grpcd_route){.how = GRPCD_HERE};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(grpcd_call_method(call), methods[i].method) == 0)
            ret_route->handle = methods[i].handle;
}

static int enroll(const char *kubelet, struct error *err)
{
    cleanup_free char *endpoint = xasprintf("unix://%s", kubelet);
    cleanup_str struct str out = STR_INIT(MESSAGE_MAX),
                           reply = STR_INIT(MESSAGE_MAX);
    cleanup_with(grpc) struct grpc *g = NULL;
    struct grpc_end end;
    int r = grpc_create(&(struct grpc_config){.endpoint = endpoint}, &g, err);
    if (r < 0)
        return r;
    proto_add_text(&out, 1, "v1beta1");
    proto_add_text(&out, 2, OURS);
    proto_add_text(&out, 3, resource);
    size_t options = proto_open(&out, 4);
    write_options(&out);
    proto_close(&out, options);
    return grpc_call(g, "/v1beta1.Registration/Register", str_text(&out),
                     out.size, CALL_MS, &reply, &end, err);
}

/* A kubelet that comes removes all sockets, ours as well, and makes its own. */
static int serve(const char *dir, struct error *err)
{
    cleanup_free char *ours = xasprintf("%s/" OURS, dir);
    cleanup_free char *kubelet = xasprintf("%s/kubelet.sock", dir);
    cleanup_with(grpcd) struct grpcd *server = NULL;
    const struct grpcd_config config = {.path = ours, .route = on_route};
    struct stat seen = {0}, now;
    for (;; (void)poll(NULL, 0, LOOK_MS)) { /* a failed wait is a short one */
        if (stat(kubelet, &now) < 0 ||
            (now.st_ino == seen.st_ino &&
             now.st_ctim.tv_nsec == seen.st_ctim.tv_nsec))
            continue;
        grpcd_destroy(steal(&server));
        int r = grpcd_create(&config, &server, err);
        if (r == 0)
            r = grpcd_start(server, err);
        if (r < 0)
            return r;
        if (enroll(kubelet, err) < 0) {
            fprintf(stderr, "deviceplugin: %s\n", err->text);
            continue; /* it is coming up */
        }
        seen = now;
        printf("registered\n");
        (void)fflush(stdout); /* nobody may be reading it */
    }
}

int main(int argc, char **argv)
{
    struct error err = {0};
    if (argc < 4) {
        fprintf(stderr, "deviceplugin KUBELET-DIR RESOURCE ID…\n");
        return 2;
    }
    cleanup_free char *dir = xasprintf("%s/device-plugins", argv[1]);
    resource = argv[2];
    ids = argv + 3;
    n_ids = (size_t)argc - 3;
    (void)serve(dir, &err); /* it fails */
    fprintf(stderr, "deviceplugin: %s\n", err.text);
    return 1;
}
