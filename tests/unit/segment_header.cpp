// SPDX-License-Identifier: MIT
#include "segment_header.c"
