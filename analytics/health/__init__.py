"""Whether the facts can be trusted, and what is broken now."""
