"""What a lane allows: how many requests at once, how long each may take, how often it is repeated, what it may cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.errors import InputError

_MILLION = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Limits of one endpoint; times in seconds.

    Attributes:
        concurrency: Requests under way at once.
        connect: Until the connection stands.
        first_byte: From the beginning of the request to the first byte of the answer. A machine without a GPU reads an
            agent's prompt of thousands of tokens for minutes before it says anything.
        idle: Between two bytes of an answer.
        total: From the beginning of the request to the end of its answer.
        asks: How often a request is made at most, where the server refuses it for now or cannot be reached.
        first_wait: Before the second time; it doubles each time, without chance, so that two runs wait alike.
        longest_wait: Most that is waited, also where the server asks for more: then the request has failed.
        answer_bytes: Largest answer.
    """

    concurrency: int = 1
    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 120.0
    total: float = 1800.0
    asks: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    answer_bytes: int = 8 << 20

    def wait(self, asked: int) -> float:
        """Seconds to wait after a request has been made ``asked`` times."""
        return min(self.first_wait * 2.0 ** (asked - 1), self.longest_wait)


@dataclass(frozen=True)
class Budget:
    """What the requests of a run may use up together; None for no bound.

    Attributes:
        tokens: Tokens of requests and answers together.
        cost: Money, in the currency of the prices.
        input_price: Price of a million tokens of requests.
        output_price: Price of a million tokens of answers.

    Raises:
        InputError: Money is bounded and nothing costs any.
    """

    tokens: int | None = None
    cost: float | None = None
    input_price: float = 0.0
    output_price: float = 0.0

    def __post_init__(self) -> None:
        if self.cost is not None and not (self.input_price or self.output_price):
            raise InputError(
                f"a cost of {self.cost:g} bounds nothing while both prices are 0", "give --price-in and --price-out"
            )


@dataclass
class Spent:
    """What has been used up.

    Attributes:
        prompt_tokens: Tokens of the requests.
        completion_tokens: Tokens of the answers.
        guessed: Answers of which the server told no count. A token then counts for each byte: never too few.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    guessed: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of requests and answers together."""
        return self.prompt_tokens + self.completion_tokens

    def cost(self, budget: Budget) -> float:
        """What that costs at the prices of a budget."""
        paid = self.prompt_tokens * budget.input_price + self.completion_tokens * budget.output_price
        return paid / _MILLION

    def overrun(self, budget: Budget) -> str:
        """What of a budget is used up, in words; empty while there is some left."""
        how = f", {self.guessed} answers counted by their bytes" if self.guessed else ""
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"{self.tokens} of {budget.tokens} tokens are used up{how}"
        if budget.cost is not None and self.cost(budget) >= budget.cost:
            return f"{self.cost(budget):.4f} of {budget.cost:.4f} are spent{how}"
        return ""


@dataclass(frozen=True)
class Endpoint:
    """A model on a server.

    Attributes:
        url: Address; of an OpenAI-compatible server up to and with its ``/v1``.
        model: Name of the model there.
        key: Sent as a bearer token; never recorded and never in a message. Empty for none.

    Raises:
        InputError: The key can be no header.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if any(c.isspace() or not c.isprintable() for c in self.key):
            raise InputError(
                "the key of the model holds a space, a line break or a control character", "export it as one word"
            )
