"""Random instances of the problems, each with an oracle of its own: a file a problem package."""
