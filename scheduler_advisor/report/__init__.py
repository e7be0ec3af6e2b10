"""The weekly report: one content, written as HTML, PDF, Markdown and JSON."""
