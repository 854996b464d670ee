"""Quality on LoCoMo, one store per conversation, against figures measured before: a bound for our own arm."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

BOUND = 0.444
"""MRR@10 of reciprocal rank fusion (k = 60) of porter BM25 and multilingual-e5-small, measured apart from the lab."""

EARLIER = {"hermes": 0.403, "bm25-porter": 0.394, "dense": 0.357}
"""The real plugin, porter BM25 with stopwords left in, and e5 alone, measured in the same way."""

ARMS = ("plain", "embeddings", "open-gate", "rrf", "bm25-porter", "dense", "hermes")


def main() -> int:
    """Runs the arms, prints overall and per class, and fails where ours is below the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="locomo10.json")
    parser.add_argument("--arms", default=",".join(ARMS), help="arms of lab bench; hermes needs a sandbox")
    options = parser.parse_args()
    if not options.file.is_file():
        print(f"no file at {options.file}: get locomo10.json (CC BY-NC 4.0) and name it")
        return 2
    lab = Path(sys.executable).with_name("lab")
    command = [lab, "bench", "--topics", f"locomo:{options.file}", "--arms", options.arms, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    (result,) = json.loads(done.stdout)["sets"]
    print("\nMRR@10 with 95 % interval over conversations; before: measured apart from the lab\n")
    ours = None
    for arm in result["arms"]:
        for score in arm["scores"]:
            mrr = score["mrr10"]
            before = (
                f"  before {EARLIER[arm['arm']]:.3f}"
                if score["topic_class"] == "overall" and arm["arm"] in EARLIER
                else ""
            )
            print(
                f"{arm['arm']:<12} {score['topic_class']:<12} n={score['n']:<5} {mrr['value']:.3f} "
                f"[{mrr['low']:.3f}, {mrr['high']:.3f}]{before}"
            )
        if arm["arm"] == "embeddings":
            ours = arm["scores"][0]["mrr10"]["value"]
    if ours is None:
        return 0
    print(f"\nembeddings {ours:.4f}, bound {BOUND}: {'met' if ours >= BOUND else 'MISSED'}")
    return int(ours < BOUND)


if __name__ == "__main__":
    sys.exit(main())
