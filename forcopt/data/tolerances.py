"""The limits beyond which an intake calls a cell odd: each with its unit and its reason."""

RARE = 0.02
"""A share of rows. A level in fewer rows that is spelled like a frequent one is a slip of the pen."""

FREQUENT = 5
"""A level with so many times the rows of another is frequent; fewer numbers have no usual range."""

TINY_GROUP = 5
"""Rows. The rates of a group of fewer are so uncertain that the report names it."""

OUTLIER = 6.0
"""Widths of the range of 90 % of the numbers. A number farther away is noted: it may have other units."""

LONELY = 30.0
"""A number so many times as large as the next one is a slip (a thousand for one), and is refused."""

CORNERS = 7
"""Decimals of coordinates: 1e-7 degrees are a centimetre, and corners that are nearer are one."""

OVERLAP = 1e-4
"""A share of the smaller area. Areas that overlap by less do so by rounded corners."""

MOST_CODES = 20
"""Levels. More numbers than this are measurements, such as ages in years, and no codes of groups."""
