/* h2_invalid - what our servers do about a header field that is not
 * well-formed. */
#ifndef BIGA_LIB_H2_H2_INVALID_H
#define BIGA_LIB_H2_H2_INVALID_H

#include <nghttp2/nghttp2.h>

/* A callback of nghttp2 that resets the stream: to leave the field out would be
 * to understand the request otherwise than somebody before or behind us. */
int h2_refuse_invalid_header(nghttp2_session *session,
                             const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_size, const uint8_t *value,
                             size_t value_size, uint8_t flags, void *arg);

#endif
