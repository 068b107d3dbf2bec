"""Reports of wrong answers by solvers, replayed."""
