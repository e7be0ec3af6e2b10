"""Long work beside everything else: started, followed, cancelled, and never silently gone."""
