"""Writes testdata/order_batches.json: mixtures with exact shares in every batch or with batches of one source, and
epochs of a given length.

python testdata/batch_vectors.py > testdata/order_batches.json

It draws one sample after another and keeps what it has drawn, as docs/order.md says; the packages compute positions.
"""

import json
from fractions import Fraction

from order_vectors import M, hashed, order, permute


class Stream:
    """A source, drawn from one position after another."""

    def __init__(self, seed, source, datasets, above=(), share=1.0):
        self.seed, self.source, self.above, self.share = seed, source, above, share
        self.epoch, self.p, self.kept = 0, 0, []
        if "n" in source:
            self.n, self.number = source["n"], len(datasets)
            datasets.append(self)
            return
        self.batch, self.counts = source.get("batch") or source["block"], source["counts"]
        whole = sum(self.counts)
        assert whole == (10_000 if "block" in source else self.batch)
        if "block" in source:
            self.word = [
                i
                for _, i in sorted(
                    (((k << 48) + (hashed(seed, 16, i, k) >> 16)) // c, i)
                    for i, c in enumerate(self.counts)
                    for k in range(c)
                )
            ]
        self.sources = [
            Stream(hashed(seed, 7, i), s, datasets, (*above, self), share * (c / whole))
            for i, (s, c) in enumerate(zip(source["sources"], self.counts, strict=True))
        ]
        self.n = self.length()

    def length(self):
        """The positions of an epoch, counted batch by batch."""
        until, drawn, batches = self.source["until"], [0] * len(self.sources), 0
        if until == "given":
            return self.source["length"]
        while True:
            counts = self.counts
            if "block" in self.source:
                one = self.word[batches % 10_000]
                counts = [self.batch * (i == one) for i in range(len(self.sources))]
            after = [d + c for d, c in zip(drawn, counts, strict=True)]
            over = any(d > s.n for d, s in zip(after, self.sources, strict=True))
            if until == "shortest" and over:
                return batches * self.batch
            drawn, batches = after, batches + 1
            if until == "longest" and all(
                d >= s.n for d, s in zip(drawn, self.sources, strict=True)
            ):
                return batches * self.batch

    def next(self):
        """The dataset, its epoch and its position of the next draw."""
        epoch, p = self.epoch, self.p
        self.p += 1
        if self.p == self.n:
            self.epoch, self.p = self.epoch + 1, 0
        if "n" in self.source:
            return self.number, epoch, p
        b, j = divmod(p, self.batch)
        if "block" in self.source:
            return self.sources[self.word[b % 10_000]].next()
        if j == 0:  # a batch is drawn source by source, and then mixed
            drawn = [s.next() for s, c in zip(self.sources, self.counts, strict=True) for _ in range(c)]
            mixed = permute(self.seed, (14, epoch, b), self.batch, range(self.batch))
            self.kept = [drawn[x] for x in mixed]
        return self.kept[j]


def cases():
    three = {"batch": 8, "counts": [5, 2, 1], "sources": [{"n": 700}, {"n": 91}, {"n": 40}]}
    nested = {
        "batch": 6, "counts": [4, 2], "until": "longest",
        "sources": [
            {"batch": 4, "counts": [1, 3], "until": "shortest", "sources": [{"n": 9}, {"n": 31}]},
            {"n": 50},
        ],
    }  # fmt: skip
    one = {"block": 8, "counts": [5000, 4000, 1000], "sources": [{"n": 700}, {"n": 91}, {"n": 41}]}
    inner = {
        "block": 6, "counts": [9999, 1], "until": "given", "length": 60,
        "sources": [
            {"block": 6, "counts": [3000, 7000], "until": "longest", "sources": [{"n": 9}, {"n": 31}]},
            {"batch": 6, "counts": [2, 4], "until": "shortest", "sources": [{"n": 50}, {"n": 60}]},
        ],
    }  # fmt: skip
    for seed, source, take, epochs in [
        (1, three | {"until": "shortest"}, 0, 3),
        (2, three | {"until": "longest"}, 0, 2),
        (M - 1, three | {"until": "given", "length": 48}, 0, 9),
        (4, nested, 0, 3),
        (5, nested, 30, 12),
        (6, three | {"until": "shortest"}, 24, 30),
        (7, {"n": 10}, 4, 9),
        (8, {"n": 10}, 25, 3),
        (9, {"batch": 40, "counts": [39, 1], "until": "longest", "sources": [{"n": 60}, {"n": 3}]}, 0, 4),
        (10, one | {"until": "shortest"}, 0, 4),
        (11, one | {"until": "longest"}, 0, 3),
        (M - 1, one | {"until": "given", "length": 160}, 0, 9),
        (13, one | {"until": "shortest"}, 24, 30),
        (14, inner, 0, 9),
        (15, {"block": 1, "counts": [1, 9999], "until": "longest", "sources": [{"n": 3}, {"n": 2}]}, 0, 2),
    ]:
        datasets = []
        stream = Stream(seed, source, datasets)
        n = take or stream.n
        at = []
        for k in range(epochs * n):
            number, e, q = stream.next()
            if k % max(epochs * n // 150, 1) == 0 or k % n in (0, n - 1):
                d = datasets[number]
                at.append([k // n, k % n, number, e, q, order(d.seed, e, d.n, [q])[0]])
        yield {"seed": seed, "source": source, "take": take, "n": n, "at": at}


def groups():
    """Ticket groups of a source with pools in such a mixture, with a given length of the epochs."""
    pools = {"n": 160, "visits": 40, "per_visit": 4, "pool": 5}
    source = {"batch": 6, "counts": [5, 1], "until": "shortest", "sources": [pools, {"n": 90}]}
    for take in (0, 72):
        datasets = []
        stream = Stream(3, source, datasets)
        levels = [[stream.n // 6 * 5, 160]]
        n = stream.n
        if take:
            levels, n = [[take, stream.n], *levels], take
        at = []
        for epoch in [0, 1, 5, 2**40, M - 1]:
            for first in range(0, n, 7):
                e, p, of = epoch, first, n
                for d, samples in levels:
                    draw = (e * d + int(Fraction(p * d, of))) % M
                    e, p, of = draw // samples, draw % samples, samples
                at.append([epoch, first, hashed(0, 0, e, p // 20) // 2])
        yield {
            "seed": 3, "source": source, "take": take, "n": n, "dataset": 0, "pool": 20,
            "levels": levels, "at": at,
        }  # fmt: skip


def sides():
    """Sides of the windows of batches: seed, epoch, batch, how many there are, and which one it is."""
    for seed in (0, 5, M - 1):
        for epoch in (0, 1, M - 1):
            for batch in (0, 1, 2, 1000, 2**40):
                for n in (1, 2, 3, 64):
                    yield [seed, epoch, batch, n, hashed(seed, 17, epoch, batch) * n >> 64]


if __name__ == "__main__":
    out = {"mixtures": list(cases()), "groups": list(groups()), "sides": list(sides())}
    print("{" + ",\n".join(f'"{k}":[\n' + ",\n".join(json.dumps(v, separators=(",", ":")) for v in vs) + "]" for k, vs in out.items()) + "}")
