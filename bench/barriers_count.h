/* SPDX-License-Identifier: MIT */
/* What user space and BPF share in the bench `barriers`: an operation, so many times in succession;
 * number k is op(k). */
#ifndef FRESHET_BENCH_BARRIERS_COUNT_H
#define FRESHET_BENCH_BARRIERS_COUNT_H

#define BARRIERS_MAX 16

/* clang-format off */
#define BARRIERS_0(op)  (void)0
#define BARRIERS_1(op)  op(0)
#define BARRIERS_4(op)  op(0); op(1); op(2); op(3)
#define BARRIERS_16(op)                   \
	BARRIERS_4(op);                   \
	op(4); op(5); op(6); op(7);       \
	op(8); op(9); op(10); op(11);     \
	op(12); op(13); op(14); op(15)
/* clang-format on */

#endif
