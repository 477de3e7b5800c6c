/* hex - hexadecimal digits, which base64.h has. */
#ifndef BIGA_LIB_BASE_HEX_H
#define BIGA_LIB_BASE_HEX_H

#include "lib/base/base64.h"

#endif
