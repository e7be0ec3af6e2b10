"""Candidate changes of today's policy, tried on the site's own past, priced and bounded."""
