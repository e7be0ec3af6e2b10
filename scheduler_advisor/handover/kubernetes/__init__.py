"""A change of policy as objects of Kueue, Volcano and KAI."""
