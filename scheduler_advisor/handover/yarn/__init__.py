"""A change of policy as properties of YARN's capacity scheduler."""
