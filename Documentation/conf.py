# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sphinx: makes the site of what Documentation/build.sh has put together.

Pages are read on their own as well, so they link to files: `streams <stream.rst>`__. Here these
links become links to pages, and one whose page or chapter is not there is a warning.
"""
import glob
import os
import posixpath
import re
from urllib.parse import unquote, urlsplit

import sphinx
from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

TOP = os.environ["RASHPA_TOP"]
log = logging.getLogger(__name__)

project = "rashpa"
author = "the rashpa authors"
copyright = author
with open(os.path.join(TOP, "dkms.conf"), encoding="utf-8") as file:
    release = re.search(r'^PACKAGE_VERSION="(.*)"', file.read(), re.M)[1]
version = release
root_doc = "index"
templates_path = []
highlight_language = "none"
smartquotes = False
html_theme = "alabaster"
html_theme_options = {
    "description": "Detector data straight into the memory where it will be used",
    "page_width": "auto",
    "sidebar_width": "260px",
    "font_family": "sans-serif",
    "show_powered_by": False,
}
FIELD = "searchfield.html"  # Sphinx of Debian 12 does not have it
if not os.path.exists(os.path.join(sphinx.package_dir, "themes", "basic", FIELD)):
    FIELD = "searchbox.html"
html_sidebars = {"**": ["about.html", FIELD, "navigation.html"]}
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # browsers refuse to fetch pages of a folder
html_static_path = ["custom.css"]
html_math_renderer = "mathml"  # MathJax would come from another host
HEADERS = glob.glob(os.path.join(TOP, "tools", "*", "rashpa[-.]*h"))
man_pages = [(f"man/{name}.3", name, f"functions and structs of <{name}>", [], 3)
             for name in map(os.path.basename, HEADERS)]
nitpicky = True
# Names defined elsewhere: types of C and of the kernel, system calls.
nitpick_ignore_regex = [
    ("c:identifier", r"(__(u|s)(8|16|32|64)|__aligned_u64|u?int\d+_t|s?size_t|u?intptr_t|bool|[a-z]+_t"
                     r"|size_t|ibv_\w+|ibv_[a-z_]+|CU[a-z]+|Vk\w+|timespec|json_object)"),
]


# --- contents

def contents(_app, docname, source):
    """The list of each section of the index is the site's contents, too."""
    if docname != "index":
        return
    text = re.sub(r"^\.\. site: ", "- ", source[0], flags=re.M)
    trees = []
    for title, section in re.findall(r"^(\w+)\n=+\n\n(.*?)(?=^\w+\n=+\n|\Z)", text, re.M | re.S)[1:]:
        files = [posixpath.normpath("Documentation/" + file) for file in re.findall(r"<(\S+)>`__", section)]
        trees.append(f".. toctree::\n   :hidden:\n   :caption: {title}\n\n" +
                     "".join(f"   /{page(file)}\n" for file in files))
    source[0] = text + "\n" + "\n".join(trees)


# --- links between files

def place(docname):
    """The file of a page, as it lies in the repository."""
    return docname + ".rst" if docname.startswith("selftests/") else f"Documentation/{docname}.rst"


def page(path):
    """The page of a file, or None."""
    if path.startswith("Documentation/man/"):
        return path.removeprefix("Documentation/")
    if path.endswith(".rst"):
        return path.removesuffix(".rst").removeprefix("Documentation/")
    return None


def anchors(app, docname):
    if docname not in app.env.rashpa_anchors:
        app.env.rashpa_anchors[docname] = set(app.env.get_doctree(docname).ids)
    return app.env.rashpa_anchors[docname]


def resolve(app, doctree, docname):
    env = app.env
    for node in list(doctree.findall(nodes.reference)):
        uri = node.get("refuri", "")
        parts = urlsplit(uri)
        if parts.scheme:
            env.rashpa_external.setdefault(uri, docname)
        if node.get("internal") or parts.scheme or not parts.path:
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(place(docname)), unquote(parts.path)))
        target = page(path)
        if target in env.all_docs:
            if parts.fragment and parts.fragment not in anchors(app, target):
                log.warning("no chapter \"%s\" in %s", parts.fragment, path, location=node)
            node["refuri"] = relative_uri(app.builder.get_target_uri(docname),
                                          app.builder.get_target_uri(target))
            if re.search(r"\.(rst|md)\b|^[a-z-]+\.[1-8]$", node.astext()):
                log.warning("a link shows the name of a file: %s", node.astext(), location=node)
            if parts.fragment:
                node["refuri"] += "#" + parts.fragment
            node["internal"] = True
        elif os.path.isfile(os.path.join(TOP, path)):
            # a file of the sources: it is a part of the site
            env.rashpa_files.add(path)
            node["refuri"] = relative_uri(app.builder.get_target_uri(docname), "files/" + path)
            node["internal"] = True
        elif not os.path.isdir(os.path.join(TOP, path)):
            log.warning("link to what is not there: %s", uri, location=node)


def begin(app):
    app.env.rashpa_anchors, app.env.rashpa_external, app.env.rashpa_files = {}, {}, set()


def end(app, exception):
    """The files that pages link to; a list of external links, which are not checked here."""
    if exception or app.builder.name != "html":
        return
    for path in app.env.rashpa_files:
        to = os.path.join(app.outdir, "files", path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(os.path.join(TOP, path), "rb") as source, open(to, "wb") as copy:
            copy.write(source.read())
    with open(os.path.join(app.outdir, "external.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{uri} {docname}\n" for uri, docname in sorted(app.env.rashpa_external.items()))


def mathml(display):
    def visit(translator, node):
        text = latex2mathml.tex2mathml(node.astext()).replace("<math", f'<math display="{display}"', 1)
        translator.body.append(f'<div class="math">{text}</div>' if display == "block" else text)
        raise nodes.SkipNode
    return visit, None


def setup(app):
    app.add_html_math_renderer("mathml", mathml("inline"), mathml("block"))
    app.connect("source-read", contents)
    app.connect("builder-inited", begin)
    app.connect("doctree-resolved", resolve)
    app.connect("build-finished", end)
    # pages are resolved in one process: what begin() keeps is its
    return {"parallel_read_safe": True, "parallel_write_safe": False}
