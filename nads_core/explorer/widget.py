"""The explorer as a widget; importing this module needs anywidget."""

from __future__ import annotations

import anywidget
import traitlets

from nads_core.explorer.views import Source, View, module


class Explorer(anywidget.AnyWidget):
    """The explorer in a live notebook; `nads_core.explorer.show` makes one.

    Its attributes are those of the view. They follow the reader, and the reader sees what you set:
    ``explorer.index = 12``, ``ipywidgets.jslink((slider, "value"), (explorer, "index"))``.
    """

    _esm = module()

    parts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    architecture = traitlets.Unicode().tag(sync=True)
    second = traitlets.Unicode().tag(sync=True)
    index = traitlets.Int(min=0).tag(sync=True)
    frequency = traitlets.List(traitlets.Int(), minlen=2, maxlen=2).tag(sync=True)
    mix = traitlets.List(traitlets.Float()).tag(sync=True)
    photo = traitlets.Int().tag(sync=True)  # -1 is an image of the reader's own, which stays in the browser
    kept = traitlets.Int(min=0).tag(sync=True)
    strength = traitlets.Float(min=0.0).tag(sync=True)
    poisoned = traitlets.Bool().tag(sync=True)

    labels = traitlets.Dict().tag(sync=True)  # of the architectures in the menu, by name
    _wanted = traitlets.List(traitlets.Unicode()).tag(sync=True)  # the names whose arrays the browser has asked for
    _packets = traitlets.Dict().tag(sync=True)  # name -> header and bytes

    def __init__(self, view: View, source: Source):
        self._source = source
        state = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(view).items()}
        super().__init__(labels=source.labels, **state)

    @traitlets.validate("architecture", "second")
    def _known(self, proposal: dict) -> str:
        name = proposal["value"]
        if name not in self.labels and not (name == "" and proposal["trait"].name == "second"):
            raise traitlets.TraitError(f"unknown architecture {name!r}: choose from {list(self.labels)}")
        return name

    @traitlets.observe("_wanted")
    def _answer(self, change: dict) -> None:
        """Send arrays when they are first asked for."""
        new = [name for name in change["new"] if name not in self._packets and name in (*self.labels, "photos")]
        packets = {name: self._source.packet(name) for name in new}
        self._packets = self._packets | {n: header | {"bytes": content} for n, (header, content) in packets.items()}
