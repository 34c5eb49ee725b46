"""What an installation holds."""

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_all_packages_are_installed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split()) - {"acerl_np.instances"}
    files = (ROOT / "acerl_np").rglob("*.py")
    assert listed == {".".join(file.relative_to(ROOT).parts[:-1]) for file in files}
