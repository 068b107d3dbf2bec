"""Small, realistic files: one set for each task of the command line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

COMMANDS = {
    "panel": "panel volunteers.csv quotas.csv --size 20 --id id --household address -o panel.html --draw",
    "districts": "districts precincts.geojson -k 4 --tolerance 2% -o districts.html --map plan.geojson",
    "release": "release people.csv --schema schema.json --budget rho=.5 -o tables",
    "fair": "fair applicants.csv --label hired --sensitive sex --notion equalized_odds=5% -o policy.json",
    "sample": "sample frame.csv --strata region,class --value turnover --size 400 --id firm -o drawn.csv",
    "model": "solve shifts.lp.gz",
}
"""What stands behind ``forcopt`` for each task on its example."""


def write_examples(folder: str | Path) -> list[Path]:
    """Copy the example files of all tasks.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist; files in it with the same names are replaced.

    Returns
    -------
    list of Path
        The files; `COMMANDS` has the command of each task, to be run in the folder.

    Examples
    --------
    >>> import tempfile
    >>> [path.name for path in write_examples(tempfile.mkdtemp())][:2]
    ['applicants.csv', 'frame.csv']
    """
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    shipped = sorted((files("forcopt.data") / "example_files").iterdir(), key=lambda file: file.name)
    for file in shipped:
        (where / file.name).write_bytes(file.read_bytes())
    return [where / file.name for file in shipped]
