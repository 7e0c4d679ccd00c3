"""What ``make setup`` cannot install by itself: a JDK for Spark and a C++ compiler.

Prints one sentence for what is missing and exits with 1; silent and 0 if all is there.
Standard library only, for it runs before anything is installed.
"""

import os
import re
import shutil
import subprocess
import sys

__all__ = ["compiler_problem", "java_problem", "python_problem"]

JAVA_RELEASE = 17
INSTALL_JAVA = "install it (Debian: apt-get install openjdk-17-jdk-headless) or set JAVA_HOME."


def python_problem() -> str | None:
    """A venv needs ensurepip, which Debian keeps in a package of its own."""
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return (
            "Watersmeet needs Python's venv module: "
            "install it (Debian: apt-get install python3.11-venv)."
        )
    return None


def java_problem() -> str | None:
    """Spark looks in JAVA_HOME first and on PATH second; so does this."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    release = java and java_release(java)
    if not release:
        where = f", and JAVA_HOME={home} has none" if home else ""
        return f"Watersmeet needs a JDK {JAVA_RELEASE} for Spark{where}: {INSTALL_JAVA}"
    if release < JAVA_RELEASE:
        return (
            f"Watersmeet needs a JDK {JAVA_RELEASE} for Spark, and {java} is version {release}: "
            f"{INSTALL_JAVA}"
        )
    return None


def java_release(java: str) -> int | None:
    """17 of ``openjdk version "17.0.15"``, 8 of ``java version "1.8.0_402"``, else None."""
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(found[1]) if found and run.returncode == 0 else None


def compiler_problem() -> str | None:
    """Verilator's makefiles call ``g++``; the simulation library is linked with it too."""
    if shutil.which("g++"):
        return None
    return "Watersmeet needs a C++ compiler: install g++ (Debian: apt-get install g++)."


def main() -> int:
    problem = python_problem() or java_problem() or compiler_problem()
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
