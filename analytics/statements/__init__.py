"""Monthly bills: one per team, adding up to the fleet's total."""

from analytics.statements.facts import Asked
from analytics.statements.make import statement_of, statements
from analytics.statements.statement import Statement

__all__ = ["Asked", "Statement", "statement_of", "statements"]
