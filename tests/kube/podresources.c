/* podresources - the PodResources API of a kubelet that is none, for tests:
 *
 *   podresources SOCKET NAMESPACE/NAME…
 *
 * says that these pods are there, and have nothing.  It says "serving" once it
 * does, and runs until it is killed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/achieved/pod_resources.h"
#include "lib/grpcd/grpcd_call.h"

enum { MESSAGE_MAX = 1 << 20 };

static void on_list(void *pods, struct grpcd_call *call)
{
    cleanup_str struct str out = STR_INIT(MESSAGE_MAX);
    for (char *const *each = pods; *each; each++) {
        const char *slash = strchr(*each, '/');
        size_t pod = proto_open(&out, 1);
        proto_add_text(&out, 1, slash ? slash + 1 : *each);
        proto_add_bytes(
            &out, 2,
            (struct proto_bytes){*each, slash ? (size_t)(slash - *each) : 0});
        proto_close(&out, pod);
    }
    grpcd_call_answer(call, str_text(&out), out.size);
}

static void on_route(void *pods, const struct grpcd_call *call,
                     struct grpcd_route *ret_route)
{
    bool list = strcmp(grpcd_call_method(call), POD_RESOURCES_LIST) == 0;
    *ret_route = (struct grpcd_route){
        .how = GRPCD_HERE, .handle = list ? on_list : NULL, .ctx = pods};
}

int main(int argc, char **argv)
{
    cleanup_with(grpcd) struct grpcd *server = NULL;
    struct error err = {0};
    if (argc < 2) {
        fprintf(stderr, "podresources SOCKET NAMESPACE/NAME…\n");
        return 2;
    }
    const struct grpcd_config config = {
        .path = argv[1], .route = on_route, .ctx = argv + 2};
    if (grpcd_create(&config, &server, &err) < 0 ||
        grpcd_start(server, &err) < 0) {
        fprintf(stderr, "podresources: %s\n", err.text);
        return 1;
    }
    printf("serving\n");
    (void)fflush(stdout); /* nobody may be reading it */
    for (;;)
        (void)pause(); /* a signal ends it */
}
