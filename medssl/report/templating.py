"""Pages from templates: files in the folder `templates` of a package, addressed as 'package/file'."""

from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

import medssl


def render(template: str, **content: Any) -> str:
    """The page with its content filled in; Jinja escapes whatever is put in. template: 'medssl.report/base.html.j2'."""
    return _PAGES.get_template(template).render(version=medssl.__version__, **content)


def _source(address: str) -> str | None:
    """The text of a template, None where there is no such file."""
    package, _, name = address.partition("/")
    file = resources.files(package) / "templates" / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


_PAGES = Environment(loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
