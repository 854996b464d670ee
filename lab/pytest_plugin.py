"""The pytest plugin: a mark that names a trial, and a fixture that runs it with the real agent. See docs/pytest.md."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lab.errors import LabError
from lab.testing.trial import LabTrial, TrialIsNoEvidence

if TYPE_CHECKING:
    from lab.testing.runner import TrialRunner

_OPTIONS = {
    "build": "The agent: 0.17.0, PRODUCT==VERSION, a path to a .whl file or to a source folder.",
    "backend": "auto, docker or bwrap.",
    "base": "Base system of the build.",
    "scenarios": "Folder of the scenarios that marks name by id.",
}
"""Options of a session, each of them a flag ``--lab-…`` and a variable ``LAB_…``, as for the commands."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that all trials of a session share."""
    group = parser.getgroup("lab", "Agent Memory Lab")
    for name, words in _OPTIONS.items():
        group.addoption(
            f"--lab-{name}", default=os.environ.get(f"LAB_{name.upper()}"), metavar=name.upper(), help=words
        )


def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark known."""
    config.addinivalue_line(
        "markers",
        "lab(scenario, *, setup='default', model='scripted:always-write', twin=False, build=''): "
        "the trial that the fixture lab_trial runs with the real agent",
    )


@pytest.fixture(scope="session")
def lab_trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrialRunner]:
    """Runs the trials of a session; isolation and builds are prepared once."""
    # The agent's adapter and its statistics take a second to load, which a suite without trials should not pay.
    from lab.testing.runner import Options, TrialRunner  # noqa: PLC0415

    given = {name: request.config.getoption(f"--lab-{name}") for name in _OPTIONS}
    told: dict[str, str] = {name: value for name, value in given.items() if value}
    with TrialRunner(Options(**told), tmp_path_factory.mktemp("lab")) as runner:
        yield runner


@pytest.fixture
def lab_trial(request: pytest.FixtureRequest, lab_trials: TrialRunner) -> LabTrial:
    """The trial that the mark ``lab`` names, run with the real agent.

    An invalid trial, an infrastructure error or an unusable machine is an error of the test, with its cause. It is
    neither a pass nor a failure, since it says nothing of the agent.
    """
    from lab.testing.runner import Wanted  # noqa: PLC0415

    mark = request.node.get_closest_marker("lab")
    if mark is None:
        pytest.fail("lab_trial needs to know which trial: @pytest.mark.lab('F1-001')", pytrace=False)
    try:
        wanted = Wanted(*mark.args, **mark.kwargs)
    except TypeError as error:
        refused = f"the mark lab is not understood: {error}"
    else:
        try:
            return lab_trials.trial(wanted)
        except (LabError, TrialIsNoEvidence) as error:
            refused = str(error)
    pytest.fail(refused, pytrace=False)  # outside of the handlers, which would tell it twice
