"""`tollbar choose`: the qualifying choices of a family, cheapest first."""
