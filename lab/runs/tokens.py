"""What live models will be asked in a run, before it runs: requests, tokens, time, cost; estimates with a source."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import Field

from lab.records import Record
from lab.runs.folder import RESULT
from lab.runs.pace import read_or_empty

TOKENS_FILE = Path(__file__).with_name("tokens.yaml")
BYTES_PER_TOKEN = 4
"""A rule of thumb for English in JSON; tokenizers differ by some ten per cent, other languages need more tokens."""

MOST_FOLDERS = 20
MOST_TRIALS = 40
"""Trials of an earlier run whose recorded requests are read, spread over all of them."""

_MILLION = 1_000_000
_REVIEW = "review"


class Appetite(Record):
    """What one trial asks of a live model.

    Attributes:
        requests_per_trial: Mean number of requests.
        prompt_low: Tokens of one request, at least.
        prompt_high: Tokens of one request, at most.
        completion: Tokens of one answer.
        seconds: Wall seconds of one answer; None where it was not measured.
        source: Where the numbers come from, for the reader.
    """

    requests_per_trial: float = Field(gt=0)
    prompt_low: float = Field(gt=0)
    prompt_high: float = Field(gt=0)
    completion: float = Field(ge=0)
    seconds: float | None = None
    source: str = "the lab's own measurement with other models"


@dataclass(frozen=True)
class Planned:
    """The part of a live model in a plan.

    Attributes:
        model: Its name.
        trials: Its trials.
        server: Address of its server, whose models wait for each other.
        tokens_per_second: Tokens that it writes by second, by the probe; None where it was not measured.
    """

    model: str
    trials: int
    server: str
    tokens_per_second: float | None = None


@dataclass(frozen=True)
class Span:
    """A number that is only known to lie between two."""

    low: float
    high: float


@dataclass(frozen=True)
class ModelTokens:
    """What a live model will be asked.

    Attributes:
        model: Its name.
        trials: Its trials.
        requests: Requests.
        prompt_tokens: Tokens of all requests together.
        completion_tokens: Tokens of all answers together.
        seconds: Wall seconds at the given concurrency; None where nothing is known of its speed.
        cost: In the currency of the prices; None without prices.
        source: Where requests and tokens come from.
        time_source: Where the seconds come from, or why there are none.
    """

    model: str
    trials: int
    requests: int
    prompt_tokens: Span
    completion_tokens: int
    seconds: Span | None
    cost: Span | None
    source: str
    time_source: str


@dataclass(frozen=True)
class TokenPlan:
    """What the live models of a run will be asked.

    Attributes:
        models: Each of them.
        concurrency: Requests to one server at once.
        seconds: Wall seconds of the server that takes longest; None where the speed of one model is not known.
    """

    models: tuple[ModelTokens, ...]
    concurrency: int
    seconds: Span | None


def estimate_tokens(
    planned: Sequence[Planned],
    reports: Path,
    *,
    scope: str = _REVIEW,
    concurrency: int = 1,
    price_in: float = 0.0,
    price_out: float = 0.0,
) -> TokenPlan:
    """Estimates what the live models of a plan will be asked.

    A model's own earlier answers are the best source, requests that were recorded under another model the second, and
    the shipped numbers the last.

    Args:
        planned: The live models.
        reports: Folder with earlier run folders.
        scope: Which requests the models answer: ``review`` or ``all``.
        concurrency: Requests to one server at once.
        price_in: Price of a million tokens of requests; with ``price_out`` 0 for none.
        price_out: Price of a million tokens of answers.
    """
    folders = sorted((p.parent for p in reports.glob("*/lock.json")), reverse=True)[:MOST_FOLDERS]
    recorded = _recorded(folders, scope) or default_appetite()
    told = tuple(
        _model(one, _measured(folders, one.model, scope) or recorded, concurrency, price_in, price_out)
        for one in planned
    )
    lanes: dict[str, list[Span | None]] = {}
    for one, model in zip(planned, told, strict=True):
        lanes.setdefault(one.server, []).append(model.seconds)
    spans = [span for lane in lanes.values() for span in lane if span]
    whole = None
    if spans and len(spans) == len(told):
        sums = [Span(sum(s.low for s in lane if s), sum(s.high for s in lane if s)) for lane in lanes.values()]
        whole = Span(max(s.low for s in sums), max(s.high for s in sums))
    return TokenPlan(told, concurrency, whole)


def default_appetite() -> Appetite:
    """The numbers that come with the lab."""
    return Appetite.model_validate(yaml.safe_load(TOKENS_FILE.read_text(encoding="utf-8")))


def _model(planned: Planned, one: Appetite, concurrency: int, price_in: float, price_out: float) -> ModelTokens:
    requests = math.ceil(planned.trials * one.requests_per_trial)
    prompt = Span(round(requests * one.prompt_low), round(requests * one.prompt_high))
    completion = round(requests * one.completion)
    cost = None
    if price_in or price_out:
        low, high = ((tokens * price_in + completion * price_out) / _MILLION for tokens in (prompt.low, prompt.high))
        cost = Span(low, high)
    seconds, why = None, "the speed is not known: the model was not probed"
    if one.seconds is not None:
        seconds, why = Span(requests * one.seconds, requests * one.seconds), f"{one.seconds:.1f} s an answer there"
    elif planned.tokens_per_second:
        # The probe tells how fast it writes. To read a token takes less than to write one, and a request whose
        # beginning is still in the server's cache is hardly read at all: the truth lies between.
        speed = planned.tokens_per_second
        seconds = Span(completion / speed, (prompt.high + completion) / speed)
        why = f"{speed:.1f} tokens/s by the probe; from all requests cached to every token read as slowly as written"
    if seconds:
        seconds = Span(seconds.low / concurrency, seconds.high / concurrency)
    return ModelTokens(planned.model, planned.trials, requests, prompt, completion, seconds, cost, one.source, why)


def _measured(folders: Sequence[Path], model: str, scope: str) -> Appetite | None:
    """From the model's own answers in the newest run that has some with counted tokens."""
    for folder in folders:
        lock = read_or_empty(folder / "lock.json")
        live = lock.get("live")
        # A replay repeats the tokens of its recording, but no model took the time.
        if not isinstance(live, dict) or live.get("scope", _REVIEW) != scope or lock.get("replayed"):
            continue
        used = list(_uses(folder, model))
        requests = sum(use["requests"] for use in used)
        counted = requests - sum(use["uncounted"] for use in used)
        prompt = sum(use["prompt_tokens"] for use in used)
        if counted > 0 and prompt > 0:
            return Appetite(
                requests_per_trial=requests / len(used),
                prompt_low=prompt / counted,
                prompt_high=prompt / counted,
                completion=sum(use["completion_tokens"] for use in used) / counted,
                seconds=sum(use["seconds"] for use in used) / requests,
                source=f"its own answers in run {folder.name} (n = {requests:.0f})",
            )
    return None


def _uses(folder: Path, model: str) -> Iterator[Mapping[str, float]]:
    keys = ("requests", "prompt_tokens", "completion_tokens", "uncounted", "seconds")
    for path in sorted((folder / "trials").glob(f"*/{RESULT}")):
        result = read_or_empty(path)
        use = result.get("model_use")
        if result.get("model") == model and result.get("status") != "error" and isinstance(use, dict):
            numbers = {key: use.get(key) for key in keys}
            if all(isinstance(n, int | float) and 0 <= n < math.inf for n in numbers.values()) and numbers["requests"]:
                yield {key: float(n) for key, n in numbers.items() if n is not None}


def _recorded(folders: Sequence[Path], scope: str) -> Appetite | None:
    """From the requests that were recorded in the newest run that has some, by their bytes; answers are not told."""
    for folder in folders:
        files = sorted((folder / "trials").glob("*/requests.jsonl"))
        files = files[:: math.ceil(len(files) / MOST_TRIALS)] if files else []
        sizes = [found for path in files if (found := _sizes(path, scope))]
        asked = [size for trial in sizes for size in trial]
        if asked:
            tokens = statistics.fmean(asked) / BYTES_PER_TOKEN
            return Appetite(
                requests_per_trial=len(asked) / len(sizes),
                prompt_low=tokens,
                prompt_high=tokens,
                completion=default_appetite().completion,
                source=f"recorded requests of run {folder.name} (n = {len(asked)}), {BYTES_PER_TOKEN} bytes a token",
            )
    return None


def _sizes(path: Path, scope: str) -> list[int]:
    """Bytes of the requests of a trial that a live model would be asked."""
    found = []
    try:
        with path.open("rb") as stream:
            for line in stream:
                exchange = json.loads(line)
                kind, phase = exchange["kind"], exchange["phase"]
                live = kind == _REVIEW and phase != "load" if scope == _REVIEW else kind not in ("probe", "unparsable")
                if live:
                    found.append(len((exchange["request"].get("text") or "").encode()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []  # a damaged old folder must not stop a new run
    return found
