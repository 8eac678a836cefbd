"""`python -m tools.release`: build images, write a release, verify one, take newer packages."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.release import debian, image
from tools.release.checking import verify
from tools.release.dist import UNSIGNED, write
from tools.release.errors import ReleaseError
from tools.release.layout import Built
from tools.release.pruning import prune
from tools.release.registry import push
from tools.release.signing import private_key, public_key

IMAGES = image.HOME / ".build" / "image"


def revision() -> str:
    """The commit of the tree; empty where git does not know."""
    words = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(words, cwd=image.HOME, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def show(built: Built) -> None:
    """One line about an image."""
    print(f"{built.name}:{built.tag}  {built.digest}  {built.size / 1e6:.1f} MB  {built.layout}")


def make_images(arguments: argparse.Namespace) -> None:
    """Build all images, and push them where a registry is given."""
    made = []
    for recipe in image.RECIPES:
        target = IMAGES / recipe.name
        shutil.rmtree(target, ignore_errors=True)
        built = image.build(recipe, target, image.image_cache(os.environ), revision=revision())
        show(built)
        made.append(built)
        if arguments.push:
            registry, _, prefix = arguments.push.rstrip("/").removeprefix("http://").partition("/")
            push(f"http://{registry}", built.layout, f"{prefix}/{recipe.name}".removeprefix("/"))
    prune(image.image_cache(os.environ), made)


def make_release(arguments: argparse.Namespace) -> None:
    """Write everything into a directory."""
    key = private_key(arguments.key) if arguments.key else None
    for built in write(arguments.directory, image.image_cache(os.environ), key, revision()):
        print(f"{built.name}:{built.tag}  {built.digest}  {built.size / 1e6:.1f} MB")
    if key is None:
        print(UNSIGNED, file=sys.stderr)


def check_release(arguments: argparse.Namespace) -> None:
    """Say what holds of a release."""
    for line in verify(arguments.directory, public_key(arguments.key.read_bytes())):
        print(line)


def make_lock(arguments: argparse.Namespace) -> None:
    """Write the newest packages into the lock."""
    names = (*debian.PACKAGES, *debian.AGENT_PACKAGES, *debian.BUILDER_PACKAGES)
    archives = debian.newest(names, image.image_cache(os.environ) / "packages")
    debian.LOCK.write_text(debian.lock_text(archives))


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    images = verbs.add_parser("image", help="build the images into .build/image")
    images.add_argument(
        "--push", default="", metavar="HOST:PORT/PREFIX", help="and push them to a registry without TLS"
    )
    images.set_defaults(verb=make_images)
    release = verbs.add_parser("release", help="write a release")
    release.add_argument("directory", type=Path, nargs="?", default=image.HOME / "dist")
    release.add_argument("--key", type=Path, help="ECDSA key on P-256 in PEM; without one nothing is signed")
    release.set_defaults(verb=make_release)
    check = verbs.add_parser("verify", help="verify a release")
    check.add_argument("directory", type=Path)
    check.add_argument("--key", type=Path, required=True, help="the public key that you believe, in PEM")
    check.set_defaults(verb=check_release)
    verbs.add_parser("lock", help="take the newest Debian packages").set_defaults(verb=make_lock)
    arguments = parser.parse_args()
    try:
        arguments.verb(arguments)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
