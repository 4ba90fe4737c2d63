"""``psgnn similar``, ``psgnn explain`` and ``psgnn evaluate``: questions about nodes, pairs and links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from psgnn.cli.arguments import (
    Json,
    NewAnchors,
    OtherGraph,
    PretrainedOption,
    Quiet,
    RunArgument,
    RunsArgument,
    Seed,
    Strict,
    load_run,
)
from psgnn.cli.reading import NOTHING, Given, reads_graph, titled
from psgnn.console import say

MOST_LISTED = 8
MEASURES = {
    "links": "links measured",
    "known": "left out: already in the graph",
    "auc": "AUC",
    "ap": "average precision",
    "mrr": "MRR per node",
    "hits@10": "Hits@10 per node",
    "hits@50": "Hits@50 per node",
}
Negatives = Literal["uniform", "degree", "distance", "per-node"]


@reads_graph
def similar_command(
    run: RunArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The name of a node.")],
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="How many nodes.")] = 10,
    graph: OtherGraph = None,
    new_anchors: NewAnchors = False,
    pretrained: PretrainedOption = None,
    given: Given = NOTHING,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the nodes whose embeddings are nearest to that of a node.

    Example: psgnn similar my-edges.csv Ada --top 5
    """
    from psgnn.console import print_json, print_table

    scorer = load_run(run, graph, given, pretrained=pretrained, strict=False, new_anchors=new_anchors)
    from psgnn.scoring import similar

    found = similar(scorer, node, top)
    if as_json:
        print_json({"run": str(run), "node": node, "similar": found.to_dicts()})
        return
    rows = [[name, f"{distance:.4f}", "yes" if linked else "no"] for name, distance, linked in found.rows()]
    print_table(f"{run}: nearest to {node}", found.columns, rows)


@reads_graph
def explain_command(
    run: RunArgument,
    a: Annotated[str, typer.Argument(metavar="A", help="The name of a node.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The name of another node.")],
    graph: OtherGraph = None,
    new_anchors: NewAnchors = False,
    pretrained: PretrainedOption = None,
    strict: Strict = False,
    given: Given = NOTHING,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Explain the score of a pair: shared neighbours, paths, anchors, and what each kind of evidence adds.

    Example: psgnn explain my-edges.csv Ada Rune
    """
    from psgnn.console import print_json, print_table

    scorer = load_run(run, graph, given, pretrained=pretrained, strict=strict, new_anchors=new_anchors)
    from psgnn.scoring import explain

    found = explain(scorer, a, b, seed=seed)
    if as_json:
        print_json({"run": str(run), **found})
        return
    for line in _facts(found):
        say(line)
    if found["contributions"] is None:
        say("this model reads all evidence at once, so no kind of it has a share of its own")
        return
    parts = sorted(found["contributions"].items(), key=lambda item: -abs(item[1]))
    rows = [["an average unlinked pair", f"{found['base']:+.2f}"]]
    rows += [[group, f"{value:+.2f}"] for group, value in parts]
    print_table("what the score is made of", ["evidence", "adds"], [*rows, ["sum", f"{found['score']:+.2f}"]])


def _facts(found: dict[str, Any]) -> list[str]:
    """What is known about a pair, in words."""
    from psgnn.scoring._explain import reason_of

    directed = "linked_back" in found
    how = (
        "they are linked" if found["linked"] else reason_of(0, -1 if found["hops"] is None else found["hops"])
    )
    if directed and found["linked_back"]:
        how = "linked both ways" if found["linked"] else "linked the other way"
    between = " -> " if directed else " and "
    lines = [f"{found['source']}{between}{found['target']}: score {found['score']:.2f}, {how}"]
    if found["num_shared"]:
        names = ", ".join(found["shared_neighbours"][:MOST_LISTED])
        more = ", ..." if found["num_shared"] > MOST_LISTED else ""
        lines.append(f"shared neighbours: {found['num_shared']} ({names}{more})")
    elif not found["linked"]:
        ways = found.get("path_directions") or [["-"] * (len(path) - 1) for path in found["paths"]]
        for path, links in zip(found["paths"], ways, strict=True):
            steps = [f" {way} {name}" for way, name in zip(links, path[1:], strict=True)]
            lines.append(f"path: {path[0]}{''.join(steps)}")
    for kind, words in (("together", "as far from both"), ("apart", "nearer to one")):
        anchors = (found["anchors"] or {}).get(kind, [])[:3]
        places = [
            f"{each['anchor']} ({each['hops_source']} and {each['hops_target']} hops)" for each in anchors
        ]
        if places:
            lines.append(f"anchors {words}: {', '.join(places)}")
    return lines


@reads_graph
def evaluate_command(
    run: RunsArgument,
    links: Annotated[
        Path,
        typer.Option("--links", metavar="FILE", help="True links that the graph lacks: two names per line."),
    ],
    negative_links: Annotated[
        Path | None,
        typer.Option(
            "--negative-links",
            metavar="FILE",
            help="Negatives of each link, as HeaRT has them: [P, M, 2] (.npy .npz), or M pairs per link (text).",
        ),
    ] = None,
    negatives: Annotated[
        Negatives,
        typer.Option(
            help="What AUC and average precision compare the links with: random unlinked pairs, "
            "pairs like the links in degree or distance, or the nodes that each end is ranked among."
        ),
    ] = "uniform",
    graph: OtherGraph = None,
    new_anchors: NewAnchors = False,
    pretrained: PretrainedOption = None,
    strict: Strict = False,
    given: Given = NOTHING,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well a run, or the ready-made weights on a graph, find the links in a file.

    AUC and average precision compare the links with unlinked pairs, which --negatives chooses. MRR and Hits@K are per
    node: the partner in a link is ranked among up to 500 nodes that its end is not linked to. With --negative-links,
    each link is ranked among its own negatives instead.

    Example: psgnn evaluate my-edges.csv --links later-links.csv
    """
    from psgnn.console import print_json, print_table
    from psgnn.paths import check_file

    check_file(links.expanduser())
    if negative_links is not None:
        check_file(negative_links.expanduser())
    asked: dict[str, Any] = {"pretrained": pretrained, "strict": strict, "new_anchors": new_anchors}
    scorer = load_run(run, graph, given, **asked, header_of=links)
    from psgnn.graph._read import header_for
    from psgnn.scoring import evaluate_against, evaluate_links
    from psgnn.scoring._evaluate import read_negatives
    from psgnn.scoring._names import named_pairs_of

    pairs = named_pairs_of(scorer, links, header_for(links, given.header))
    if negative_links is None:
        found = evaluate_links(scorer, pairs, negatives=negatives, seed=seed)
    else:
        found = evaluate_against(scorer, pairs, read_negatives(negative_links, scorer, pairs.shape[1]))
    if as_json:
        print_json({"run": titled(run), "file": str(links), **found})
        return
    titles = MEASURES if negative_links is None else {"mrr": "MRR"}
    rows = [
        [titles.get(name, name), f"{value:.4f}" if isinstance(value, float) else str(value)]
        for name, value in found.items()
    ]
    print_table(f"{titled(run)}: how well the links in {links} are found", ["measure", "value"], rows)
