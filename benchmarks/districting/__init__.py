"""Districting: departments, states, grids, formulations, ReCom; of the rows that parts leave, a page."""
