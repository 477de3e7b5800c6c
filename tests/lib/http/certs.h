/* certs - authorities and certificates made while a test runs, so that
 * nothing else has to make them and none is ever out of date. */
#ifndef BIGA_TESTS_LIB_HTTP_CERTS_H
#define BIGA_TESTS_LIB_HTTP_CERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

/* A key pair and its certificate; aborts when something fails, as all here. */
struct cert;
struct cert *cert_authority(const char *name);
void cert_destroy(struct cert *c); /* NULL allowed */

enum cert_purpose { CERT_SERVER = 1, CERT_CLIENT = 2 }; /* or'd; 0: any */
struct cert_spec {
    const char *name; /* NULL: no common name */
    const char *second_name, *organization;
    const char *dns[20]; /* up to the first NULL */
    unsigned purposes;
    bool local; /* valid for 127.0.0.1 and localhost */
    /* life in seconds from now; 0: an hour back, an hour on */
    int64_t from_s, until_s;
    bool authority;
};
struct cert *cert_create(const struct cert *authority,
                         const struct cert_spec *spec);

/* Into files, replaced at once (by rename). */
void cert_write(const struct cert *c, const char *path);
void cert_write_key(const struct cert *c, const char *path);
void cert_write_text(const char *text, const char *path);
/* A new one, of which nothing but the files is kept. */
void cert_issue(const struct cert *authority, const struct cert_spec *spec,
                const char *cert_path, const char *key_path);
/* As PEM and as DER, appended. */
void cert_pem(const struct cert *c, struct str *out);
void cert_der(const struct cert *c, struct str *out);

#endif
