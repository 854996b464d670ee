"""The agent's own extraction patterns as shipped: its real code, run in its sandbox, read as labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from lab.agents.hermes.install import describe
from lab.isolation.base import SANDBOX_HOME
from lab.records import digest
from lab.retrieval.systems.sandboxed import SandboxedWorker, WorkerProgram
from lab.retrieval.testset import Author
from lab.suites.provenance.data import Labels, Message, Person, Role, Voice

NAME = "hermes-auto-extract"

READING = (
    "Unless one of these says who said it, nothing does; it is read so: authors are unknown, linked entities are "
    "persons mentioned, and category user_pref is a preference of the user. It has no place for roles, calls and "
    "quotations."
)
"""How its rows are read as labels."""

_DATABASE = f"{SANDBOX_HOME}/provenance.db"
_OWN = "user_pref"
_EXTRACT_SECONDS = 300.0


class ShippedPatterns:
    """The extraction of the holographic plugin (``auto_extract``), which is off unless configured.

    Its store has no field for who said a fact, so reading its rows as labels takes three decisions: the author of
    everything is unknown; an entity that is linked to a fact is a person who is mentioned; and a fact of category
    ``user_pref`` says that the user has a preference. It stores nothing of roles, vocatives and quotations.

    Args:
        program: Where the plugin runs.
    """

    name = NAME

    def __init__(self, program: WorkerProgram) -> None:
        self._program = program
        self._about: dict[str, Any] = {}
        self.columns: tuple[str, ...] = ()
        """What its table has for a fact; empty before ``extract``."""
        self.stored = 0
        """How many facts the last ``extract`` stored."""

    def settings(self) -> Mapping[str, Any]:
        """What decides its answers: version of the agent, digests of plugin and worker; after ``extract``."""
        return self._about

    def extract(self, messages: Sequence[Message]) -> list[Labels]:
        """Labels of messages, each of them a session of its own.

        Raises:
            EnvironmentUnusable: The sandbox does not start.
            SystemFailed: The plugin raised or ended.
        """
        sessions = [{"role": one.sent_as, "content": one.text} for one in messages]
        with closing(SandboxedWorker(self._program)) as worker:
            described = describe(self._program.environment)
            self._about = {
                "agent": f"{described['product']} {described['version']}",
                **worker.ask("about"),
                "worker": digest(self._program.source),
            }
            worker.ask("open", path=_DATABASE, config={"auto_extract": True})
            answer = worker.ask("extract", messages=sessions, seconds=_EXTRACT_SECONDS)
        self.columns = tuple(answer["columns"])
        self.stored = sum(map(len, answer["stored"]))
        return [_labels(facts) for facts in answer["stored"]]


def _labels(facts: Sequence[Mapping[str, Any]]) -> Labels:
    names = dict.fromkeys(name for fact in facts for name in fact["entities"])
    own = any(fact["category"] == _OWN for fact in facts)
    return Labels(
        author=Voice(kind=Author.UNKNOWN),
        persons=tuple(Person(name=name, role=Role.MENTIONED) for name in names),
        preferences=(Voice(kind=Author.USER),) if own else (),
    )
