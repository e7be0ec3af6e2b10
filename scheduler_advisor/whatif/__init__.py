"""One candidate beside today on the site's own past, in processes of its own."""
