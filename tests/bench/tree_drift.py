"""How far a tree that grew drifts from one that is made from scratch, over real or made-up texts.

``python tests/bench/tree_drift.py [STORE]``: the embedded chunks of a store, resource by resource,
else vectors around random centres. A tree is made of half of the texts; the rest comes in tenths,
and each time a twentieth of the texts changes. Then the same texts get a tree from scratch. Of all
pairs of texts that lie under one lowest summary in either tree: how many do so in both.
"""

import argparse
import random
from collections.abc import Sequence
from itertools import combinations

import measure
import numpy as np

from filestore.core.paths import ChunkPath
from filestore.enrich.tree import (
    SAMPLE,
    Leaf,
    Present,
    TreeLimits,
    TreePlan,
    TreePlanning,
    choose_threshold,
    find_root,
)

TEXTS = 2_000
CENTRES = 300
DIMENSION = 64
SPREAD = 0.8
STEPS = 10
TOKENS = 180
WINDOW = 16_384
SMALLEST = 20
Rows = list[tuple[bytes, np.ndarray]]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", nargs="?", help="its chunks, instead of made-up ones")
    parser.add_argument("--texts", type=int, default=TEXTS, help="default: %(default)s")
    given = parser.parse_args()
    resources = _of_store(given.store) if given.store else [_made_up(given.texts)]
    found = [_compare(rows) for rows in resources if len(rows) >= SMALLEST]
    together, both, grown, scratch = map(sum, zip(*found, strict=True))
    rows = [
        measure.Row(figure="pairs under one lowest summary", ours=f"{both / together:.3f} in both"),
        measure.Row(
            figure="summaries", ours=f"grown {grown:,}", yardstick=f"from scratch {scratch:,}"
        ),
    ]
    texts = sum(len(one) for one in resources)
    print(measure.table(f"A grown tree beside one from scratch, {texts:,} texts", rows))


def _compare(rows: Rows) -> tuple[int, int, int, int]:
    chance = random.Random(1)
    sample = np.array([vector for _, vector in sorted(rows, key=lambda one: one[0])[:SAMPLE]])
    limits = TreeLimits(threshold=choose_threshold(sample).value, window=WINDOW)
    order = list(range(len(rows)))
    chance.shuffle(order)
    texts = [(ChunkPath(f"r/chunk{number}.md"), *rows[number]) for number in order]
    first = len(texts) // 2
    plan = _planned(texts[:first], [], limits)
    size = -(-(len(texts) - first) // STEPS)
    for end in range(first + size, len(texts) + size, size):
        for place in chance.sample(range(min(end, len(texts))), min(end, len(texts)) // 20):
            path, _, vector = texts[place]
            texts[place] = path, chance.randbytes(32), vector
        plan = _planned(texts[:end], _present(plan), limits)
    scratch = _planned(texts, [], limits)
    one, other = _pairs(plan), _pairs(scratch)
    return len(one | other), len(one & other), len(plan.summaries), len(scratch.summaries)


def _planned(
    texts: Sequence[tuple[ChunkPath, bytes, np.ndarray]], present: list[Present], limits: TreeLimits
) -> TreePlan:
    leaves = [Leaf(path=path, key=key, tokens=TOKENS) for path, key, _ in texts]
    vectors = np.array([vector for _, _, vector in texts], dtype=np.float32)
    return TreePlanning(leaves, vectors, present, limits, root=find_root(present)).plan()


def _present(plan: TreePlan) -> list[Present]:
    taken = {one.path for one in plan.summaries}
    names = (f"r/summary{number}.md" for number in range(1, 1_000_000))
    for one in plan.summaries:
        if one.path is None:
            one.path = next(ChunkPath(name) for name in names if name not in taken)
    return [
        Present(
            path=one.path,
            level=one.level,
            children={
                member.path: frozenset([member.key])
                for member in one.members
                if member.path is not None
            },
        )
        for one in plan.summaries
        if one.path is not None
    ]


def _pairs(plan: TreePlan) -> set[tuple[str, str]]:
    """Pairs of texts that are children of one summary."""
    found: set[tuple[str, str]] = set()
    for one in plan.summaries:
        paths = sorted(member.path for member in one.members if isinstance(member, Leaf))
        if one is not plan.root:
            found.update(combinations(paths, 2))
    return found


def _made_up(count: int) -> Rows:
    generator = np.random.default_rng(1)
    centres = generator.standard_normal((CENTRES, DIMENSION))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    noise = generator.standard_normal((count, DIMENSION)) * SPREAD / DIMENSION**0.5
    rows = centres[generator.integers(CENTRES, size=count)] + noise
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [(generator.bytes(32), row) for row in rows.astype(np.float32)]


def _of_store(root: str) -> list[Rows]:
    from filestore.catalog import summaries
    from filestore.store import Store

    found: list[Rows] = []
    with Store.open(root) as store, store._parts.looking(sound=True) as (snapshot, _):
        embedder, embeddings = store.embedder, snapshot.embeddings
        if embedder is None or embeddings is None:
            raise SystemExit("the store has no embeddings that can be used here")
        for resource, _, _ in snapshot.catalog.resources():
            rows = snapshot.catalog.files_of(resource)
            chunks = {row.id for row in rows if row.kind == "chunk"}
            bodies = summaries.body_keys(snapshot.catalog, resource)
            keys = sorted({key for file, key in bodies.items() if file in chunks})
            vectors, there = embeddings.get(embedder.fingerprint, keys)
            pairs = zip(keys, vectors, there.tolist(), strict=True)
            found.append([(key, vector) for key, vector, is_there in pairs if is_there])
    return found


if __name__ == "__main__":
    main()
