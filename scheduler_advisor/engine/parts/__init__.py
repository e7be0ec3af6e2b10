"""Parts of a policy beyond order and node choice: topology, sharing, defragmentation, elasticity,
services and failures. Each is pure and stands on its own; drivers call them."""
