"""Refuses to run beside another project's distribution that has a package `chaski`, too."""

from __future__ import annotations

import importlib.metadata


def refuse_another() -> None:
    """Raises where the distribution `chaski` is installed; this one is `chaski-eo`.

    pip puts the files of both into the same folder. They overwrite each other, and removing one
    removes files of the other, so what is imported would be part of each.
    """
    try:
        other = importlib.metadata.distribution("chaski")
    except importlib.metadata.PackageNotFoundError:
        return
    # An editable install of this project from before it was called chaski-eo has no such file.
    if other.files is not None and not any(str(f) == "chaski/__init__.py" for f in other.files):
        return
    raise ImportError(
        f"the distribution chaski {other.version} is installed in {other.locate_file('')}: it is "
        "another project, whose package has the same name and overwrites this one. Run "
        "`pip uninstall -y chaski chaski-eo`, then install chaski-eo again"
    )


refuse_another()
