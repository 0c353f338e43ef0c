"""Decision `look`: a server of the user's by its own answers, compared with policies, and the price of each change."""
