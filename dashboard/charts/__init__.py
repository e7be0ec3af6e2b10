"""Charts: functions from figures to a Plotly figure."""
