"""Where the packages are, and the parts of the description that need the public address of the repository.

The packages in `models/` are installed as those of `forcopt.models`.

`FORCOPT_REPOSITORY` holds it while a distribution is built. Links of the README then lead there, so that they
work on a package index, and the metadata name it. Without it the README is taken as it is.
"""

import os
import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

address = os.environ.get("FORCOPT_REPOSITORY", "").rstrip("/")
readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
urls = {}
if address:
    readme = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:)", rf"\1{address}/raw/main/", readme)  # a page is no picture
    readme = re.sub(r"\]\((?![a-z]+:|#)", f"]({address}/blob/main/", readme)
    urls = {
        "Repository": address,
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Documentation": f"{address}/blob/main/docs/index.md",
    }
# Folders of data count as packages too: setuptools warns of those that are left out.
places = {
    f"forcopt.models.{name}": f"models/{name.replace('.', '/')}"
    for name in find_namespace_packages("models", exclude=["*__pycache__*"])
}
engine = find_namespace_packages(include=["forcopt*"], exclude=["*__pycache__*"])
setup(
    packages=[*engine, *places],
    package_dir=places,
    long_description=readme,
    long_description_content_type="text/markdown",
    project_urls=urls,
)
