"""One module per library, each building the same three models.

A peer module has

- `DISTRIBUTIONS`, the names of the distributions whose versions are reported;
- `dense(data)`, `transport(data)` and `hess(data)`, which build the model from the data, hand it over to
  HiGHS without running it, and return whatever holds the result: this is what is timed;
- `to_highspy(result)`, which gives a `highspy.Highs` with the model as handed over, for the check;
- `size(result)`, its numbers of rows and columns, asked after the measurement;
- optionally `EXTRA_COLUMNS`, the number of columns that the library adds of itself.

Each model is written as an experienced user of the library would write it to be fast, with public means only.
"""
