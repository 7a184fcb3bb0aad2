# SPDX-License-Identifier: MIT
"""A reader of segments written from docs/segment-format.md alone, in another language.

It shows that the page has all that is needed. It is no good model for speed, and Python gives no
fences: it reads segments that nobody is writing.
"""
import mmap
import struct

STATS, STRINGS, GROUPS, BANKS, CONTROL, PARTS, HISTOGRAMS, LIVES, BITMAPS, _, CELLS = range(1, 12)
MASK = 2**64 - 1


class Segment:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.map = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        assert self.map[:8] == b"FRESHET\n" and self.u32(8) == 1 and self.u32(12) == 0x01020304
        self.nstats, self.max_groups, self.nbanks, self.row_stride = self.many("I", 28, 4)
        self.sections = {}
        for i in range(self.u32(24)):
            kind, count, offset, size, stride = struct.unpack_from("=IIQQQ", self.map, 248 + 32 * i)
            self.sections[kind] = (offset, count, stride)
        self.live = CONTROL in self.sections
        if self.live:
            at = self.sections[CONTROL][0]
            (self.slots, self.rseq, self.fallback, self.words, self.cell_size, self.dirty_row,
             nparts, self.nhistograms) = self.many("I", at, 8)
            self.parts = [self.many("I", self.element(PARTS, i), 6) for i in range(nparts)]

    def u32(self, at):
        return struct.unpack_from("=I", self.map, at)[0]

    def many(self, kind, at, count):
        return struct.unpack_from(f"={count}{kind}", self.map, at)

    def u64(self, at):
        return struct.unpack_from("=Q", self.map, at)[0]

    def element(self, kind, i):
        offset, _, stride = self.sections[kind]
        return offset + i * stride

    def string(self, offset):
        at = self.sections[STRINGS][0] + offset
        return self.map[at:self.map.find(b"\0", at)].decode()

    def columns(self):
        """(family, key) of each."""
        return [(self.string(self.u32(at)), self.string(self.u32(at + 8)))
                for at in (self.element(STATS, i) for i in range(self.nstats))]

    def bank(self):
        self.generation = self.u64(768)
        assert self.generation
        self.at = self.element(BANKS, self.generation % self.nbanks)
        assert self.u64(self.at) == self.generation
        self.ngroups, self.nslots = self.many("I", self.at + 24, 2)
        self.epoch = self.u64(self.at + 40)

    def row(self, slot):
        return self.at + (64 + 16 * self.max_groups + 63) // 64 * 64 + slot * self.row_stride

    def paths(self):
        """{path: slot}, in order."""
        self.bank()
        found, names = {}, []
        for i in range(self.ngroups):
            slot, parent, _, _ = self.many("I", self.at + 64 + 16 * i, 4)
            at = self.element(GROUPS, slot)
            name = self.map[at + 16:at + 16 + self.u32(at + 12)].decode()
            names.append(names[parent] + "/" + name if i else "")
            found[names[i] or "/"] = slot
        return found

    def used_slots(self):
        rseq, fallback = self.many("I", self.sections[CONTROL][0] + 68, 2)
        return [*range(min(rseq, self.rseq)),
                *range(self.rseq, self.rseq + min(fallback, self.fallback))]

    def dirty(self, used):
        bits = 0
        for epoch in self.epoch, self.epoch + 1:
            for slot in [*self.used_slots(), self.slots]:
                at = self.element(BITMAPS, epoch % 4 * (self.slots + 1) + slot)
                bits |= int.from_bytes(self.map[at:at + self.dirty_row], "little")
        return [d for d in range(used) if bits >> d & 1]

    def life(self, slot):
        at = self.element(LIVES, slot)
        generation, depth, parent, born = struct.unpack_from("=IHHQ", self.map, at)
        return generation, depth, parent, born, self.many("I", at + 16, 12)

    def cell(self, cpu, group):
        """The words of a group on one CPU slot."""
        cell, words = self.element(CELLS, cpu) + group * self.cell_size, []
        for kind, _, count, at, down, less in self.parts:
            part = list(self.many("Q", cell + at, count))
            if kind == 2:
                part[0] -= self.u64(cell + down)
            elif kind == 3:
                version = self.u64(cell + down)
                bank = min((version & -version).bit_length() - 1, 5) if version else 5
                whole = self.many("Q", cell + down + 8 + 8 * count * bank, count)
                minus = self.many("Q", cell + less, count) if less else [0] * count
                part = [a + b - c for a, b, c in zip(part, whole, minus)]
            words += part
        return words

    def read(self, slot):
        """All words of a group and those below it: columns first, then histograms."""
        self.bank()
        if not self.live:
            return list(self.many("Q", self.row(slot) + 16, self.nstats))
        used = min(self.u32(self.sections[CONTROL][0] + 64), self.max_groups)
        total = list(self.many("Q", self.row(slot) + 16, self.words))
        _, depth, parent, _, _ = self.life(slot)
        for d in self.dirty(used) if parent else [slot]:
            generation, its_depth, _, born, ancestor = self.life(d)
            if not generation or not depth <= its_depth <= 11 or ancestor[depth] != slot:
                continue
            own = [0] * self.words
            if self.generation >= born:
                if d >= self.nslots or self.u32(self.row(d)) != generation:
                    continue
                own = self.many("Q", self.row(d) + 16 + 8 * self.words, self.words)
            total = [a - b for a, b in zip(total, own)]
            for cpu in self.used_slots():
                total = [a + b for a, b in zip(total, self.cell(cpu, d))]
        assert self.u64(768) - self.generation <= self.nbanks - 2
        return [word & MASK for word in total]
