/* cri_stream - where a runtime streams a command, a container's own input and
 * output, or the ports of a sandbox: what was asked for begins when somebody
 * connects there, within a minute, and asks for an upgrade. */
#ifndef BIGA_ADVERTISER_CRI_CRI_STREAM_H
#define BIGA_ADVERTISER_CRI_CRI_STREAM_H

#include "advertiser/cri/cri_endpoint.h"

struct cri_streams {
    bool in, out, err; /* which there are to be */
    bool tty;          /* then `err` must not */
};
struct cri_command {
    const char *const *argv;
    size_t n_argv;
    struct cri_streams streams;
};
int cri_exec_url(struct cri *c, const char *id, const struct cri_command *cmd,
                 unsigned ms, char ret_url[CRI_TEXT_MAX], struct error *err);
int cri_attach_url(struct cri *c, const char *id,
                   const struct cri_streams *streams, unsigned ms,
                   char ret_url[CRI_TEXT_MAX], struct error *err);
struct cri_ports {
    const int32_t *list; /* 1 to 65535 */
    size_t n;
};
int cri_forward_url(struct cri *c, const char *sandbox_id,
                    const struct cri_ports *ports, unsigned ms,
                    char ret_url[CRI_TEXT_MAX], struct error *err);

#endif
