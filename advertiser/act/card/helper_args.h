/* helper_args - the arguments of biga-card (card/card.h) that make the volumes
 * of a pod.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_CARD_HELPER_ARGS_H
#define BIGA_ADVERTISER_ACT_CARD_HELPER_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/pod/podspec.h"

enum { HELPER_ARGS_PAD_ID_SIZE = 32 + 1 };

struct helper_args {
    const char **argv; /* not NULL-terminated */
    size_t n, cap;
    struct arena arena;
};
/* `word` is biga-card's command, `dir` the pod's directory. */
void helper_args_init(struct helper_args *p, const char *word, const char *dir);
void helper_args_fini(struct helper_args *p);
void helper_args_add(struct helper_args *p, const char *text);

/* How many pieces `size` bytes are; and those pieces, hidden under as many
 * bytes from `pad` on. */
size_t helper_args_pieces(size_t size);
void helper_args_add_pieces(struct helper_args *p, const char *data,
                            size_t size, const char *pad);

/* Bytes of all files of the pod. */
size_t helper_args_contents(const struct podspec *spec);
/* Has it a volume of that medium? */
bool helper_args_has(const struct podspec *spec, enum podspec_medium medium);

/* The random bytes that hide the contents. */
struct helper_args_pad {
    char id[HELPER_ARGS_PAD_ID_SIZE];
    const char *bytes;
    size_t size;
};
/* From what `pad DIR SIZE` wrote; borrows `out`.  -EPROTO. */
int helper_args_pad(const struct str *out, const struct str *err_text,
                    size_t size, struct helper_args_pad *ret_pad,
                    struct error *err);

/* After "files DIR": volumes as folders below DIR/volumes, and their files.
 * `pad` has helper_args_contents() bytes; NULL: the pod has no contents. */
void helper_args_files(struct helper_args *p, const struct podspec *spec,
                       const struct helper_args_pad *pad);
/* After "memory DIR": volumes in memory, as folders below DIR; or after
 * "hugepages MOUNT PAGE DIR" those of that page. */
void helper_args_memory(struct helper_args *p, const struct podspec *spec);
void helper_args_hugepages(struct helper_args *p, const struct podspec *spec,
                           uint64_t page);

#endif
