/* vpd - Vital Product Data: what a PCI device says about itself (PCI Local
 * Bus Specification 3.0, appendix I). */
#ifndef BIGA_ADVERTISER_PROBE_VPD_H
#define BIGA_ADVERTISER_PROBE_VPD_H

#include <stddef.h>

enum { VPD_SIZE_MAX = 32768, VPD_VALUE_MAX = 255 };

/* The value of a read-only keyword ("SN": serial number) in the `size` bytes
 * at `data`, NUL-terminated and without spaces at its end.  0, -ENOENT when
 * there is none, -EINVAL when the data is damaged before it. */
int vpd_find(const unsigned char *data, size_t size, const char keyword[2],
             char ret_value[VPD_VALUE_MAX + 1]);

#endif
