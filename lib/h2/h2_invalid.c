#include "lib/h2/h2_invalid.h"

int h2_refuse_invalid_header(nghttp2_session *session,
                             const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_size, const uint8_t *value,
                             size_t value_size, uint8_t flags, void *arg)
{
    (void)session;
    (void)frame;
    (void)name;
    (void)name_size;
    (void)value;
    (void)value_size;
    (void)flags;
    (void)arg;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}
