"""The adversarial half of the lab: scenarios, trials, observation from bytes, controls."""
