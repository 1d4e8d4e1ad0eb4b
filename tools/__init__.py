"""Commands for those who work on rankad: pictures of the README, and the checks before a release."""
