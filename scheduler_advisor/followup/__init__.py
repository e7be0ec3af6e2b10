"""What advice and operators' own changes really brought, adjusted for load."""
