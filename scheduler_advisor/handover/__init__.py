"""Hand over: a change of policy as the exact change for the scheduler in use, with how to try it
without effect, how to see that it took, how to undo it, and what the scheduler cannot express."""
