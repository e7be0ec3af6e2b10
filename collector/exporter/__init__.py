"""The node's metrics for Prometheus, built at each scrape from the newest picture."""
