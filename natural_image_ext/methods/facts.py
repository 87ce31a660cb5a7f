"""What tables need to know of every method on pictures and scenes, from their recipes."""

from medssl.methods.facts import MethodFacts
from natural_image_ext.methods.classification.np_match import DIVERGENCES, NPMatch
from natural_image_ext.methods.classification.recipes import METHODS, recipe
from natural_image_ext.methods.segmentation.recipes import FRAMEWORKS, HEADS, seg_recipe

ANY = "own data"  # facts are the same whatever the data set


def known_facts() -> list[MethodFacts]:
    """The facts of all methods, each title once, by their place in tables; entry point of `medssl.method_facts`."""
    by_title = {facts.title: facts for facts in (*_picture_facts(), *_scene_facts())}
    return sorted(by_title.values(), key=lambda facts: facts.place)


def _picture_facts() -> list[MethodFacts]:
    facts = [
        recipe(name, ANY).facts for name, picture_recipe in METHODS.items() if picture_recipe.method is not NPMatch
    ]
    return facts + [recipe("np_match", ANY, divergence).facts for divergence in DIVERGENCES]


def _scene_facts() -> list[MethodFacts]:
    return [seg_recipe(name, ANY, head).facts for name in FRAMEWORKS for head in HEADS]
