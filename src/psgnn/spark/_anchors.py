"""Anchors of a graph on Spark, by what blocks nominate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from psgnn.errors import unknown_name
from psgnn.graph._graph import IntArray
from psgnn.spark._blocks import Block, Plan, by_kind
from psgnn.spark._graph import Blocks
from psgnn.spark._mail import REPORT, Letter, Post
from psgnn.spark._search import top_of

RULES = ("degree", "farthest-first", "mixed", "random")
ROUNDS = 6  # in which farthest-first anchors are picked
FAR = 2**30
HOPS_A_JOB = 4


def pick_anchors(post: Post, graph: Blocks, rule: str, count: int, seed: int) -> IntArray:
    """The anchors that a rule picks, ``[count]``.

    ``farthest-first`` picks several nodes at a time, in `ROUNDS` rounds: those farthest from the anchors so far.
    ``mixed`` takes half of its anchors so, and the others by chance, in proportion to the degree.
    """
    if rule not in RULES:
        raise unknown_name("anchor rule for Spark", rule, RULES)
    if rule in ("degree", "random"):
        return _nominated(post, graph, rule, count, seed)
    spread = _farthest(post, graph, count if rule == "farthest-first" else (count + 1) // 2, seed)
    if spread.size == count:
        return spread
    drawn = _nominated(post, graph, "proportional", count, seed)
    others = drawn[~np.isin(drawn, spread)][: count - spread.size]
    return np.insert(spread, np.arange(1, others.size + 1), others)


def _nominated(post: Post, graph: Blocks, rule: str, count: int, seed: int) -> IntArray:
    work = partial(nominate, graph.plan, rule, count, seed)
    table, reports = post.step(f"anchors: {rule}", graph.mail, work)
    post.drop(table)
    return top_of(reports, "nodes", "keys", count)


def nominate(
    plan: Plan, rule: str, count: int, seed: int, place: int, letters: list[Letter]
) -> Iterator[Letter]:
    """Report the own nodes of the largest keys."""
    block = Block(plan, place, next(letter.arrays for letter in letters if letter.kind == "block"))
    degrees = block.degrees[block.own]
    chance = np.random.default_rng([seed, place]).random(block.size)
    # The largest of log(u) / w are a sample without replacement in proportion to the weights w.
    keys = {
        "degree": degrees + chance / 2,
        "random": chance,
        "proportional": np.log(np.maximum(chance, 1e-300)) / degrees,
    }[rule]
    best = np.argsort(-keys, kind="stable")[:count]
    yield Letter(REPORT, "nominated", {"nodes": best + block.first, "keys": keys[best]})


def _farthest(post: Post, graph: Blocks, count: int, seed: int) -> IntArray:
    chosen = _nominated(post, graph, "proportional", 1, seed)  # a node of a large component, most likely
    mail = post.some(graph.mail)
    first = True
    for turn in range(ROUNDS):
        left = count - (0 if first else chosen.size)
        take = 1 if first else -(-left // (ROUNDS - turn))
        mail, reports = post.step(f"anchors: round {turn}", mail, partial(note_chosen, graph.plan, chosen))
        moved, t = True, 0
        hop = partial(come_nearer, graph.plan, count, seed)
        while moved:
            t += HOPS_A_JOB
            before, further = mail, mail
            for _ in range(HOPS_A_JOB - 1):
                further = post.spread(further, hop)
            mail, reports = post.step(f"anchors: round {turn}, hops {t}", further, hop)
            post.drop(before)
            moved = any(letter.arrays["moved"][0] for letter in reports)
        found = top_of(reports, "nodes", "keys", count)
        found = found[~np.isin(found, chosen)] if not first else found
        chosen = found[:1] if first else np.concatenate([chosen, found[:take]])
        first = False
        if chosen.size >= count:
            break
    return chosen[:count]


def note_chosen(plan: Plan, chosen: IntArray, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """The anchors so far are at no distance from the anchors; the first call forgets where the search began."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    near = kinds["near"][0].arrays["near"] if "near" in kinds and chosen.size > 1 else None
    near = np.full(block.size, FAR, np.int64) if near is None else near
    near[chosen[(chosen >= block.first) & (chosen < block.last)] - block.first] = 0
    yield Letter(place, "near", {"near": near})
    yield from block.send("news", near=near[None])


def come_nearer(plan: Plan, count: int, seed: int, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """One hop more of the distance to the nearest anchor; report the farthest nodes."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    near = kinds["near"][0].arrays["near"]
    indptr, indices, _ = block.links(0)
    everyone = np.asarray(block.gather(near[None], kinds.get("news", []), "near")[0])
    own = indptr[block.at : block.at + block.size + 1]
    some = np.flatnonzero(np.diff(own))
    least = np.minimum.reduceat(everyone[indices], own[some]) + 1
    moved = bool((least < near[some]).any())
    near[some] = np.minimum(near[some], least)
    # A component without an anchor counts as near: its nodes say little about the others.
    keys = np.where(near >= FAR, 1, near) + np.random.default_rng([seed, place]).random(block.size) / 2
    best = np.argsort(-keys, kind="stable")[:count]
    found = {"moved": np.array([moved]), "nodes": best + block.first, "keys": keys[best]}
    yield Letter(REPORT, "near", found)
    yield Letter(place, "near", {"near": near})
    yield from block.send("news", near=near[None])
