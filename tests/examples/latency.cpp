// SPDX-License-Identifier: MIT
#include "../../docs/examples/latency.c"
