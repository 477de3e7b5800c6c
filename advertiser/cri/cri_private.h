/* cri_private - what the files of cri share: cri.c makes the calls,
 * cri_encode.c writes requests, cri_decode.c reads and judges replies (bytes
 * in, values out; no I/O). */
#ifndef BIGA_ADVERTISER_CRI_CRI_PRIVATE_H
#define BIGA_ADVERTISER_CRI_CRI_PRIVATE_H

#include "advertiser/cri/cri.h"
#include "advertiser/cri/cri.pb-c.h"

/* --- requests: all in the arena, texts borrowed --------------------------- */

Cri__PodSandboxConfig *
cri_encode_sandbox(struct arena *a, const struct cri_sandbox_config *config);
/* With the namespaces of the sandbox. */
Cri__ContainerConfig *
cri_encode_container(struct arena *a, const struct cri_container_config *config,
                     const struct cri_sandbox_config *sandbox);
Cri__ImageSpec *cri_encode_image(struct arena *a, const char *image);
Cri__Pair **cri_encode_pairs(struct arena *a, const struct cri_pairs *pairs);
/* The texts themselves are neither copied nor written to. */
char **cri_encode_texts(const char *const *texts);
char *cri_encode_text(const char *text); /* NULL: "" */

/* The server's code becomes an errno that says what it means. */
int cri_make_plain(const struct grpc_end *end, int r, struct error *err);

/* --- replies: 0 or -EPROTO with a text ------------------------------------ */

/* Is it [a-f0-9]{1,CRI_ID_MAX}? */
bool cri_id_valid(const char *id);

/* What decoding may take: so much, and so many times the reply's size; live
 * at once. */
enum {
    CRI_DECODE_BASE = 4 << 20,
    CRI_DECODE_TIMES = 8,
    CRI_DECODE_MAX = 64 << 20,
};

int cri_decode_version(const void *data, size_t size,
                       struct cri_version *ret_version, struct error *err);
int cri_decode_status(const void *data, size_t size,
                      struct cri_status *ret_status, struct error *err);
/* Of RunPodSandbox and CreateContainer. */
int cri_decode_id(const void *data, size_t size, char ret_id[CRI_ID_MAX + 1],
                  struct error *err);
/* It must be `id`'s. */
int cri_decode_container(const void *data, size_t size, const char *id,
                         struct cri_container *ret_container,
                         struct error *err);
/* Those that lack one of the labels are left out, whatever the server made
 * of the filter. */
int cri_decode_sandboxes(const void *data, size_t size, struct cri_pairs labels,
                         struct cri_sandboxes *ret_list, struct error *err);
int cri_decode_containers(const void *data, size_t size,
                          struct cri_pairs labels,
                          struct cri_containers *ret_list, struct error *err);
/* Also -EMSGSIZE. */
int cri_decode_exec(const void *data, size_t size, struct cri_exec *ret_exec,
                    struct error *err);
int cri_decode_usages(const void *data, size_t size,
                      struct cri_usages *ret_list, struct error *err);
/* Of Exec, Attach and PortForward: printable, and not cut off. */
int cri_decode_url(const void *data, size_t size, char ret_url[CRI_TEXT_MAX],
                   struct error *err);
int cri_decode_image(const void *data, size_t size, struct cri_image *ret_image,
                     struct error *err);
/* 1: of a kind that we do not know. */
int cri_decode_event(const void *data, size_t size, struct cri_event *ret_event,
                     struct error *err);

#endif
