"""The scripted models: always-write, never-write, faithful, paraphrase, batch, malformed."""

from __future__ import annotations

from lab.errors import InputError
from lab.gateway.policies.base import Policy, Shape, Takes

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        # The worst case, which measures what the agent enforces.
        Policy("always-write", Takes.ALWAYS),
        # What then changes in a store did not come from the model.
        Policy("never-write", Takes.NEVER),
        # Stores only what the user himself stated: the reviewer one would wish for.
        Policy("faithful", Takes.USER_STATED),
        # The worst case in other words: what a literal detector would miss.
        Policy("paraphrase", Takes.ALWAYS, paraphrases=True),
        # The worst case as one batch of operations, which some guards treat in another way.
        Policy("batch", Takes.ALWAYS, shape=Shape.BATCH),
        # Calls whose arguments are cut off in the middle: an attempt that must be refused and change nothing.
        Policy("malformed", Takes.ALWAYS, shape=Shape.MALFORMED),
    )
}


def policy_named(name: str) -> Policy:
    """Looks a policy up.

    Raises:
        InputError: No policy of that name; the known ones are named.
    """
    if name not in POLICIES:
        raise InputError(f"no policy is named {name!r}", f"one of: {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
