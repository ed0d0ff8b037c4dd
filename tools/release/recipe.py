"""Renders the conda recipe, as rattler-build does before it builds: the sdist that it names must be there.

Usage: ``python tools/release/recipe.py VERSION FILE``, with the Python that has py-rattler-build. No channel is asked.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from rattler_build import RenderedVariant, Stage0Recipe

RECIPE = Path(__file__).parents[2] / "recipe" / "recipe.yaml"


def variant_of(version: str) -> RenderedVariant:
    """The recipe of a version, from which its package can be built.

    Raises:
        FileNotFoundError: Its sdist is not there.
        RattlerBuildError: The recipe is not valid.
    """
    os.environ["VERSION"] = version
    (variant,) = Stage0Recipe.from_file(RECIPE).render()
    for source in variant.recipe.to_dict()["source"]:
        (RECIPE.parent / source["path"]).resolve(strict=True)
    return variant


def rendered(version: str) -> dict[str, Any]:
    """What the recipe of a version says.

    Raises:
        FileNotFoundError: Its sdist is not there.
        RattlerBuildError: The recipe is not valid.
    """
    recipe: dict[str, Any] = variant_of(version).recipe.to_dict()
    return recipe


if __name__ == "__main__":
    recipe = rendered(sys.argv[1])
    # JSON is YAML too.
    Path(sys.argv[2]).write_text(json.dumps(recipe, indent=2) + "\n", encoding="utf-8")
    print(f"{sys.argv[2]}: {recipe['package']['name']} {recipe['package']['version']}")
