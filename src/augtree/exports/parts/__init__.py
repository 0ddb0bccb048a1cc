"""The code that exported modules are made of: what a policy uses of it is copied into its module (`bundle`)."""
