/* SPDX-License-Identifier: MIT */
/*
 * The restartable sequences of inline.h by themselves: on cells of the test, and on an rseq area of the
 * test, so that they run where the kernel has none (qemu-user). They are interrupted in front of their
 * commit by a jump to where the kernel would send them. At the end, on the kernel's own area.
 */
#include <stdint.h>

/* The countdown-th commit from now does not happen. */
extern int32_t countdown;
#if defined(__x86_64__)
#define FRESHET_SEQ_DELAY                 \
	"decl countdown(%%rip)\n\t"       \
	"jz 4b\n\t"
#else
#define FRESHET_SEQ_DELAY                          \
	"adrp x12, countdown\n\t"                  \
	"ldr w15, [x12, :lo12:countdown]\n\t"      \
	"sub w15, w15, #1\n\t"                     \
	"str w15, [x12, :lo12:countdown]\n\t"      \
	"cbz w15, 4b\n\t"
#endif
#include <freshet/freshet.h>

#include <errno.h>
#include <string.h>

#include "base/cpus.h"
#include "base/rseq.h"
#include "tap.h"

#define SLOTS  3u
#define WORDS  128u
#define SET    7u /* word where the set begins */
#define EPOCH  4u
#define TAG    ((uint64_t)9 << 40)

int32_t countdown;

static _Thread_local struct {
	uint32_t cpu_id_start, cpu_id;
	uint64_t rseq_cs;
	uint32_t flags, node_id, mm_cid, pad;
} __attribute__((aligned(32))) area;

enum { CPU_ID = 4, MM_CID = 24 };

static struct freshet_hot hot;

struct cells {
	uint64_t word[SLOTS][WORDS];
};
static struct cells cells, before;

static uint64_t place_of(ptrdiff_t at, uint64_t stride)
{
	return (uint64_t)at << 32 | stride;
}

/* A handle on cells that are ready for updates; the thread is on CPU slot 1. */
static struct freshet_handle ready(unsigned field)
{
	ptrdiff_t at = (char *)&area - (char *)__builtin_thread_pointer();

	memset(&cells, 0, sizeof(cells));
	for (unsigned i = 0; i < SLOTS; i++)
		cells.word[i][0] = EPOCH + TAG;
	hot.selector = EPOCH;
	memset(&area, 0, sizeof(area));
	area.cpu_id = field == CPU_ID ? 1 : 40;
	area.mm_cid = field == MM_CID ? 1 : 41;
	countdown = 0;
	before = cells;
	return (struct freshet_handle){
		.hot = &hot,
		.cell = (char *)&cells,
		.tag = TAG,
		.place = (int64_t)place_of(at, sizeof(cells.word[0])),
		.limits = SLOTS | field << 16,
	};
}

/* Whether the cells are as `before`, but for one word. */
static int changed_only(unsigned slot, unsigned word, uint64_t now)
{
	before.word[slot][word] = now;
	return !memcmp(&cells, &before, sizeof(cells));
}

static int unchanged(void)
{
	return !memcmp(&cells, &before, sizeof(cells));
}

TEST(add)
{
	static const uint64_t amounts[] = { 1, 0, 4095, 4096, 1ull << 40, UINT64_MAX, 77 };
	unsigned fields[] = { CPU_ID, MM_CID };

	for (unsigned f = 0; f < 2; f++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			for (unsigned word = 1; word < WORDS; word += 31) {
				struct freshet_handle h = ready(fields[f]);
				uint64_t sum = 0;

				*(fields[f] == CPU_ID ? &area.cpu_id : &area.mm_cid) = slot;
				for (unsigned i = 0; i < 7; i++) {
					EXPECT_EQ(freshet_seq_add(&h, word, amounts[i]), 1);
					sum += amounts[i];
					EXPECT(changed_only(slot, word, sum), "%u", i);
				}
				/* As constants, which may become part of instructions. */
				EXPECT_EQ(freshet_seq_add(&h, word, 1), 1);
				EXPECT_EQ(freshet_seq_add(&h, word, 4095), 1);
				EXPECT_EQ(freshet_seq_add(&h, word, 1ull << 33), 1);
				EXPECT_EQ(freshet_seq_add(&h, word, (uint64_t)-3), 1);
				EXPECT(changed_only(slot, word, sum + 4093 + (1ull << 33)));
			}
}

TEST(add_public)
{
	struct freshet_handle h = ready(MM_CID);

	h.limits |= 2ull << 32 | 2ull << 48; /* two stats, with decreases */
	EXPECT_EQ(freshet_add(&h, 1, 5), 0);
	EXPECT_EQ(freshet_add(&h, 1, -3), 0);
	EXPECT_EQ(cells.word[1][2], 5);
	EXPECT_EQ(cells.word[1][4], 3);
}

/* Each way in which nothing may be done. */
static void spoil(unsigned way, struct freshet_handle *h)
{
	switch (way) {
	case 0:
		cells.word[1][0]++;
		break;
	case 1:
		hot.selector++;
		break;
	case 2: /* a forked child */
		hot.selector = 0;
		break;
	case 3:
		area.mm_cid = SLOTS;
		break;
	case 4:
		area.mm_cid = UINT32_MAX;
		break;
	case 5:
		area.cpu_id = (uint32_t)-1;
		break;
	case 6:
		area.cpu_id = (uint32_t)-2;
		break;
	case 7: /* another group's handle */
		h->tag += 1ull << 40;
		break;
	case 8:
		countdown = 1;
		break;
	}
	before = cells;
}
#define WAYS 9u

TEST(misses)
{
	const int64_t n[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

	for (unsigned way = 0; way < WAYS; way++) {
		struct freshet_handle h = ready(MM_CID);

		spoil(way, &h);
		EXPECT(freshet_seq_add(&h, 3, 1) == 0, "way %u", way);
		EXPECT(unchanged(), "way %u", way);

		h = ready(MM_CID);
		spoil(way, &h);
		EXPECT(freshet_seq_observe(&h, 3, 5, 4) == 0, "way %u", way);
		EXPECT(unchanged(), "way %u", way);

		for (unsigned count = 2; count <= FRESHET_MAX_SET; count++) {
			h = ready(MM_CID);
			spoil(way, &h);
			EXPECT(freshet_seq_set(&h, SET, count, n) == 0, "way %u", way);
			/* All but an interruption comes before anything is written; that leaves
			 * something in a bank, but no version. */
			if (way == 8)
				memcpy(&before.word[1][SET + 1 + 0], &cells.word[1][SET + 1],
				       8 * count);
			EXPECT(unchanged(), "way %u, count %u", way, count);
		}
	}
}

TEST(observe)
{
	struct freshet_handle h = ready(MM_CID);

	EXPECT_EQ(freshet_seq_observe(&h, 3, 1ull << 35, 4), 2);
	EXPECT_EQ(freshet_seq_observe(&h, 3, 7, 5), 2);
	before.word[1][4] = 1;
	before.word[1][5] = 1;
	EXPECT(changed_only(1, 3, (1ull << 35) + 7));

	h = ready(MM_CID);
	countdown = 2; /* between the two */
	EXPECT_EQ(freshet_seq_observe(&h, 3, 7, 5), 1);
	EXPECT(changed_only(1, 3, 7));
}

/* What freshet_seq_set() does, in C. */
static void set_model(uint64_t *set, unsigned count, const int64_t *n)
{
	const uint64_t deepest = 1ull << (FRESHET_BANKS - 1);
	uint64_t version = set[0];
	const uint64_t *from = set + 1 + (unsigned)__builtin_ctzll(version | deepest) * count;
	uint64_t *to = set + 1 + (unsigned)__builtin_ctzll((version + 1) | deepest) * count;

	for (unsigned i = 0; i < count; i++)
		to[i] = from[i] + (uint64_t)n[i];
	set[0] = version + 1;
}

TEST(sets)
{
	const int64_t n[16] = { 1, -2, 4095, 4096, 1ll << 40, 0,  -(1ll << 50), 8,
				9, 10, -11,  12,   13,        14, 1ll << 62,    16 };

	for (unsigned count = 2; count <= FRESHET_MAX_SET; count++) {
		struct freshet_handle h = ready(MM_CID);

		for (unsigned i = 0; i < 200; i++) {
			EXPECT_EQ(freshet_seq_set(&h, SET, count, n), 1);
			set_model(&before.word[1][SET], count, n);
			EXPECT(unchanged(), "count %u, version %u", count, i);
		}
		EXPECT_EQ(cells.word[1][SET], 200);
	}
}

TEST(set_interrupted)
{
	const int64_t n[3] = { 1, 1, 1 };

	for (unsigned version = 0; version < 70; version++) {
		struct freshet_handle h = ready(MM_CID);
		uint64_t *set = cells.word[1] + SET;
		unsigned bank = (unsigned)__builtin_ctz(version | 1u << (FRESHET_BANKS - 1));

		for (unsigned i = 0; i < version; i++)
			freshet_seq_set(&h, SET, 3, n);
		countdown = 1;
		EXPECT_EQ(freshet_seq_set(&h, SET, 3, n), 0);
		EXPECT_EQ(set[0], version);
		for (unsigned i = 0; i < 3; i++)
			EXPECT_EQ(set[1 + 3 * bank + i], version);
		/* What it left does not matter to the next. */
		EXPECT_EQ(freshet_seq_set(&h, SET, 3, n), 1);
		bank = (unsigned)__builtin_ctz((version + 1) | 1u << (FRESHET_BANKS - 1));
		for (unsigned i = 0; i < 3; i++)
			EXPECT_EQ(set[1 + 3 * bank + i], version + 1);
	}
}

TEST(mark)
{
	const uint64_t bit = 1ull << 63;

	for (unsigned way = 0; way < 7; way++) {
		struct freshet_handle h = ready(MM_CID);
		uint64_t tag = TAG, bits = 5, *cell = cells.word[1];
		int done;

		hot.selector = EPOCH + 1; /* the cell has the former one's stamp */
		area.mm_cid = way == 1 ? 2 : 1;
		area.cpu_id = way == 2 ? (uint32_t)-1 : 0;
		hot.selector += way == 3;
		tag = way == 4 ? 0 : tag;
		h.tag += way == 5;
		countdown = way == 6;
		done = freshet_seq_mark(&h, 1, EPOCH + 1, &tag, &bits, bit, cell);
		EXPECT(done == (way == 0), "way %u", way);
		EXPECT(way == 6 || bits == (5 | (done ? bit : 0)), "way %u", way);
		EXPECT(changed_only(1, 0, (way ? EPOCH : EPOCH + 1) + TAG), "way %u", way);
	}
}

/* As in include/uapi/linux/rseq.h. */
struct descriptor {
	uint32_t version, flags;
	uint64_t start, length, abort;
} __attribute__((aligned(32)));

extern const struct descriptor __start___rseq_cs[], __stop___rseq_cs[];
extern const char __executable_start[], etext[];

#if defined(__x86_64__)
#define SIGNATURE 0x53053053u
#else
#define SIGNATURE 0xd428bc00u
#endif

TEST(descriptors)
{
	const struct descriptor *d = __start___rseq_cs;

	EXPECT(__stop___rseq_cs - d > 20);
	for (; d < __stop___rseq_cs; d++) {
		const char *start = (const char *)(uintptr_t)d->start;
		const char *abort = (const char *)(uintptr_t)d->abort;
		uint32_t signature;

		EXPECT_EQ((uintptr_t)d % 32, 0);
		EXPECT_EQ(d->version, 0);
		EXPECT_EQ(d->flags, 0);
		REQUIRE(start > __executable_start && start + d->length < etext);
		REQUIRE(abort > __executable_start && abort < etext);
		EXPECT(d->length > 16 && d->length < 512, "%u", (unsigned)d->length);
		EXPECT(abort < start || abort >= start + d->length);
		memcpy(&signature, abort - 4, 4);
		EXPECT_EQ(signature, SIGNATURE);
#if defined(__aarch64__)
		{
			uint32_t last;

			memcpy(&last, start + d->length - 4, 4);
			EXPECT((last & 0xfffffc00) == 0xc89ffc00, "not a stlr: %x", last);
		}
#endif
	}
}

/* Where the kernel finds the descriptor, and that it is the sequence's that has run. */
TEST(area_names_descriptor)
{
	struct freshet_handle h = ready(MM_CID);

	EXPECT_EQ(freshet_seq_add(&h, 1, 1), 1);
	if (sizeof(FRESHET_SEQ_END) > 1)
		EXPECT_EQ(area.rseq_cs, 0);
	else
		EXPECT(area.rseq_cs >= (uintptr_t)__start___rseq_cs &&
		       area.rseq_cs < (uintptr_t)__stop___rseq_cs && area.rseq_cs % 32 == 0);
}

TEST(kernels_area)
{
	unsigned slots = cpus_possible();
	uint64_t *cell, sum = 0;
	struct rseq_place place;
	struct freshet_handle h;

	int r = rseq_find(&place);

	if (r) { /* then there is nothing to try: ports/library.c */
		EXPECT_EQ(r, -EOPNOTSUPP);
		return;
	}
	h = ready(MM_CID);
	cell = calloc(slots, sizeof(cells.word[0]));
	REQUIRE(cell);
	h.cell = (char *)cell;
	h.place = (int64_t)place_of(place.area, sizeof(cells.word[0]));
	h.limits = slots | (uint64_t)place.field << 16;
	for (unsigned i = 0; i < slots; i++)
		cell[i * WORDS] = EPOCH + TAG;
	for (unsigned i = 0; i < 1000000; i++)
		while (!freshet_seq_add(&h, 3, 1))
			;
	for (unsigned i = 0; i < slots; i++)
		sum += cell[i * WORDS + 3];
	EXPECT_EQ(sum, 1000000);
	free(cell);
}

TAP_MAIN
