/* openapi - schema/openapi.yaml, as it was when the program was built. */
#ifndef BIGA_EXTENDER_VIEW_OPENAPI_H
#define BIGA_EXTENDER_VIEW_OPENAPI_H

extern const char openapi_yaml[]; /* NUL-terminated */

#endif
