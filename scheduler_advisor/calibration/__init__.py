"""How well a replay of the policy in force repeats what really happened."""
