"""Pictures and pages that show what a policy does."""
