"""What pyproject.toml cannot say: the catalogues of texts are compiled before the modules are gathered."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithTexts(build_py):
    def run(self) -> None:
        subprocess.run([sys.executable, Path(__file__).parent / "packaging/catalogue.py"], check=True)  # noqa: S603  # our own script
        super().run()


setup(cmdclass={"build_py": BuildWithTexts})
