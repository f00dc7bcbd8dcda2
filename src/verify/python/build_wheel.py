"""Builds the wheel of badge_verify.py: a build backend as PEP 517 asks for, from the standard library alone.

pip calls it (`pip install src/verify/python`); by hand: `python3 build_wheel.py FOLDER`. The same source gives the same bytes.
"""

import base64
import hashlib
import os
import re
import sys
import tarfile
import zipfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
MODULE = "badge_verify.py"
SOURCES = [MODULE, "build_wheel.py", "pyproject.toml", "README.md"]
#: The earliest time that a zip file can have.
MADE_AT = (1980, 1, 1, 0, 0, 0)


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def project():
    """The strings of pyproject.toml that the metadata repeats. Python has a parser of TOML only from 3.11 on."""
    found = dict(re.findall(r'^([\w-]+) = "([^"]*)"', read("pyproject.toml"), re.MULTILINE))
    [dependency] = re.findall(r'^dependencies = \["([^"]*)"\]', read("pyproject.toml"), re.MULTILINE)
    return {**found, "dependency": dependency, "stem": found["name"].replace("-", "_") + "-" + found["version"]}


def metadata():
    of = project()
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", of["name"]),
        ("Version", of["version"]),
        ("Summary", of["description"]),
        ("License-Expression", of["license"]),
        ("Requires-Python", of["requires-python"]),
        ("Requires-Dist", of["dependency"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    return "".join("%s: %s\n" % field for field in fields) + "\n" + read("README.md")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 427. Returns the file's name."""
    stem = project()["stem"]
    info = stem + ".dist-info"
    files = {
        MODULE: read(MODULE),
        info + "/METADATA": metadata(),
        info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [(name, digest(text), len(text.encode())) for name, text in files.items()]
    lines = ["%s,sha256=%s,%d\n" % row for row in record] + [info + "/RECORD,,\n"]
    files[info + "/RECORD"] = "".join(lines)
    name = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in files.items():
            wheel.writestr(zipfile.ZipInfo(path, MADE_AT), text, zipfile.ZIP_DEFLATED)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517, with the metadata that PEP 643 asks for. Returns the file's name."""
    stem = project()["stem"]
    name = stem + ".tar.gz"
    information = os.path.join(sdist_directory, "PKG-INFO")
    with open(information, "w", encoding="utf-8") as file:
        file.write(metadata())
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz") as archive:
        archive.add(information, stem + "/PKG-INFO")
        for source in SOURCES:
            archive.add(os.path.join(FOLDER, source), stem + "/" + source)
    os.remove(information)
    return name


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))
